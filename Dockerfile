# toolcell in a container, without --privileged and without any capability added.
#
#   docker build -t toolcell .
#   docker run --rm --entrypoint cat toolcell /usr/share/toolcell/seccomp.json > toolcell-seccomp.json
#
# On the host, as its root, one group per controller that cells' groups are made in (cgroup version 1):
#
#   for c in memory cpu cpuacct pids freezer; do mkdir -p /sys/fs/cgroup/$c/toolcell-container; done
#
# and then, each option being needed for the reason beside it:
#
#   docker run -d --name toolcell --network none \
#     --security-opt seccomp=toolcell-seccomp.json \               namespaces, mounts, pivot_root: Docker's profile has them not
#     --security-opt systempaths=unconfined \                      a cell has a /proc of its own
#     -v /sys/fs/cgroup/memory/toolcell-container:/sys/fs/cgroup/memory \    limits; Docker's own groups are read-only
#     -v /sys/fs/cgroup/cpu/toolcell-container:/sys/fs/cgroup/cpu \
#     -v /sys/fs/cgroup/cpuacct/toolcell-container:/sys/fs/cgroup/cpuacct \
#     -v /sys/fs/cgroup/pids/toolcell-container:/sys/fs/cgroup/pids \
#     -v /sys/fs/cgroup/freezer/toolcell-container:/sys/fs/cgroup/freezer \
#     -v toolcell-state:/var/lib/toolcell \                        key and ledger; no image's file system will do
#     toolcell
#   docker exec toolcell toolcell run -- python3 -c 'print(6*7)'
#
# With cgroup version 2, instead of the five groups: mkdir /sys/fs/cgroup/toolcell-container on the host, and
# --cgroupns host -v /sys/fs/cgroup/toolcell-container:/sys/fs/cgroup. Where the host has AppArmor also
# --security-opt apparmor=unconfined. What may be taken away, and a container without root in it: README.md.

# The release that both are of is pinned by these tags; name others, by digest for example, with --build-arg.
ARG BUILD_BASE=rust:1.90-bookworm
ARG RUNTIME_BASE=debian:bookworm-slim

FROM ${BUILD_BASE} AS build
WORKDIR /src
COPY . .
# Whoever has the program already gives a BUILD_BASE that has it as /out/toolcell: then nothing is compiled.
RUN [ -x /out/toolcell ] || { \
      cargo build --profile dist --locked --package toolcell-cli && \
      mkdir -p /out && cp target/dist/toolcell /out/toolcell; \
    }

FROM ${RUNTIME_BASE}
# What cells see of the image is its /usr: tools go here. Packages of the base's distribution, or none.
ARG PACKAGES=python3
RUN [ -z "${PACKAGES}" ] || { \
      apt-get update && apt-get install -y --no-install-recommends ${PACKAGES} && rm -rf /var/lib/apt/lists/*; \
    }
# For root these are its own places. Any other user (--user) makes folders of its own in them.
RUN mkdir -p /var/lib/toolcell /run/toolcell-user && chmod 1777 /var/lib/toolcell /run/toolcell-user
ENV XDG_STATE_HOME=/var/lib/toolcell XDG_RUNTIME_DIR=/run/toolcell-user
COPY runner/cell/filters/container.json /usr/share/toolcell/seccomp.json
COPY --from=build /out/toolcell /usr/local/bin/toolcell
VOLUME ["/var/lib/toolcell"]
ENTRYPOINT ["toolcell"]
CMD ["serve"]
