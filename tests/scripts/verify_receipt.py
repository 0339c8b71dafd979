"""Verifies receipts with libraries that others wrote: securesystemslib (DSSE, Ed25519) and in-toto-attestation.

    verify_receipt.py PUBLIC.pem RECEIPT.json [REQUEST.json]   exit 0 if the receipt holds
    verify_receipt.py --flip PUBLIC.pem RECEIPT.json           flips every byte of payload, type and signature in turn;
                                                               exit 0 if none of the changed receipts holds
"""

import base64
import hashlib
import json
import sys

from google.protobuf import json_format
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key


def key_of(path):
    with open(path, "rb") as file:
        return SSlibKey.from_crypto(load_pem_public_key(file.read()))


def holds(key, fields):
    """Whether the envelope verifies under the key alone, whatever keyid it claims."""
    envelope = Envelope.from_dict(json.loads(json.dumps(fields)))
    named = SSlibKey(envelope_keyid(fields), key.keytype, key.scheme, key.keyval)
    envelope.verify([named], 1)
    return envelope.payload


def envelope_keyid(fields):
    return fields["signatures"][0]["keyid"]


def check(key, fields, request):
    payload = holds(key, fields)
    statement = json_format.Parse(payload, statement_pb2.Statement())
    Statement.copy_from_pb(statement).validate()
    assert fields["payloadType"] == "application/vnd.in-toto+json", fields["payloadType"]
    if request is not None:
        with open(request, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        assert statement.subject[0].digest["sha256"] == digest, "the receipt is about another request"


def refused(key, fields):
    try:
        holds(key, fields)
    except Exception:  # any way of refusing is good
        return True
    return False


def flip(key, fields):
    payload = bytearray(base64.b64decode(fields["payload"]))
    signature = bytearray(base64.b64decode(fields["signatures"][0]["sig"]))
    kind = fields["payloadType"]
    keyid = envelope_keyid(fields)
    count = 0

    def changed(payload=payload, kind=kind, signature=signature):
        text = lambda raw: base64.b64encode(bytes(raw)).decode()
        return {"payload": text(payload), "payloadType": kind, "signatures": [{"keyid": keyid, "sig": text(signature)}]}

    assert not refused(key, changed()), "the control: unchanged it holds"
    for at in range(len(payload)):
        payload[at] ^= 1 << at % 8
        assert refused(key, changed()), f"payload byte {at}"
        payload[at] ^= 1 << at % 8
        count += 1
    for at in range(len(signature)):
        signature[at] ^= 1 << at % 8
        assert refused(key, changed()), f"signature byte {at}"
        signature[at] ^= 1 << at % 8
        count += 1
    for at in range(len(kind)):
        other = kind[:at] + chr(ord(kind[at]) ^ 1) + kind[at + 1 :]
        assert refused(key, changed(kind=other)), f"type byte {at}"
        count += 1
    print(count)


def main(arguments):
    if arguments[0] == "--flip":
        public, receipt = arguments[1:3]
        with open(receipt, encoding="utf-8") as file:
            flip(key_of(public), json.load(file))
        return
    public, receipt = arguments[:2]
    request = arguments[2] if len(arguments) > 2 else None
    with open(receipt, encoding="utf-8") as file:
        check(key_of(public), json.load(file), request)
    print("holds")


if __name__ == "__main__":
    main(sys.argv[1:])
