#!/usr/bin/env bash
# Verifies a receipt with nothing but OpenSSL (3.0 or newer), jq and coreutils:
#   verify-receipt.sh PUBLIC.pem RECEIPT.json
# Exit 0 only if the signature holds over DSSE's pre-authentication encoding of type and payload.
set -euo pipefail

public=$1
receipt=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

jq -re .payload "$receipt" | base64 -d > "$work/payload"
jq -re '.signatures[0].sig' "$receipt" | base64 -d > "$work/signature"
type=$(jq -re .payloadType "$receipt")
{
    printf 'DSSEv1 %d %s %d ' "${#type}" "$type" "$(wc -c < "$work/payload")"
    cat "$work/payload"
} > "$work/signed"
openssl pkeyutl -verify -pubin -inkey "$public" -rawin -in "$work/signed" -sigfile "$work/signature"
