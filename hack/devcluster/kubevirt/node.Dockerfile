# KubeVirt's programs on a node: virt-handler, and virt-launcher with libvirt and QEMU. The context is the folder of the product "kubevirt".
FROM debian:bookworm-slim

# virt-launcher runs as uid 107, and libvirt looks for "qemu" by name. As root, libvirt also wants its own user, which its package makes.
RUN groupadd -g 107 qemu && useradd -u 107 -g 107 -d /home/qemu -s /bin/bash qemu \
 && apt-get update \
 && apt-get install -y --no-install-recommends \
    libvirt-daemon-system libvirt-daemon-driver-qemu libvirt-clients qemu-system-x86 qemu-utils ovmf seabios \
    nftables iproute2 procps util-linux psmisc acl xorriso libcap2-bin \
 && rm -rf /var/lib/apt/lists/*

COPY libvirt /etc/libvirt
COPY nsswitch.conf /etc/
COPY bin/virt-launcher bin/virt-launcher-monitor bin/virt-probe bin/virt-tail bin/virt-freezer bin/virt-handler bin/virt-chroot bin/container-disk /usr/bin/
COPY scripts/node-labeller.sh scripts/kvm-works /usr/bin/
COPY scripts/virtqemud /usr/sbin/

# virt-handler opens consoles as /proc/PID/root/var/run/…: Debian's link /var/run -> /run would lead it to its own /run.
RUN ln -sfn ../run /var/run

# The DHCP server for guests listens on port 67 without being root. AdjustResources of virt-handler looks for a process "virtqemud".
RUN setcap cap_net_bind_service+ep /usr/bin/virt-launcher-monitor \
 && mkdir -p /usr/libexec/libvirt && ln -s /usr/sbin/libvirtd /usr/libexec/libvirt/virtqemud
ENTRYPOINT ["/usr/bin/virt-launcher"]
