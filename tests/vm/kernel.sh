#!/usr/bin/env bash
# Puts Debian's kernel for virtual machines, and the few modules that the suite's machine needs, into a folder. Nothing
# is installed. Without effect where the folder is there.
#
#   tests/vm/kernel.sh FOLDER      FOLDER/vmlinuz, FOLDER/NN-module.ko in the order to load them, FOLDER/package
set -euo pipefail
readonly FOLDER=$1
readonly MODULES=(virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk overlay)

[ -e "$FOLDER/vmlinuz" ] && exit 0

mkdir -p "$(dirname "$FOLDER")"
work=$(mktemp -d "$FOLDER.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

# The meta package depends on the kernel of the day.
package() {
    apt-cache depends linux-image-cloud-amd64 2> /dev/null | sed -nE 's/^ *Depends: (linux-image-[0-9].*)/\1/p' | head -n 1
}

# As whoever runs this: apt's own user may not write here.
download() {
    [ -n "$1" ] && apt-get download -qq -o APT::Sandbox::User=root "$1"
}

name=$(package)
if ! download "$name"; then
    # Lists that are too old name files that are gone.
    apt-get update -qq
    name=$(package)
    download "$name"
fi
dpkg-deb -x ./*.deb tree

mkdir made
cp tree/boot/vmlinuz-* made/vmlinuz
echo "$name" > made/package
for at in "${!MODULES[@]}"; do
    module=$(find tree -name "${MODULES[at]}.ko*")
    into=$(printf 'made/%02d-%s.ko' "$at" "${MODULES[at]}")
    case $module in
        *.ko) cp "$module" "$into" ;;
        *.xz) xz -dc "$module" > "$into" ;;
        *) echo "$name has no module ${MODULES[at]}" >&2 && exit 1 ;;
    esac
done
mv made "$FOLDER"
