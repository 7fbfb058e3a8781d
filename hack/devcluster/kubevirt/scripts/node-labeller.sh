#!/bin/bash
# Writes what libvirt says of this node for virt-handler, which makes labels of it. KubeVirt's own script takes a /dev/kvm that
# exists for one that works, and uses the daemon before it listens.
set -eo pipefail
to=/var/lib/kubevirt-node-labeller
arguments=(--machine q35 --arch x86_64 --virttype qemu)
if reason=$(kvm-works); then
	chmod o+rw /dev/kvm
	arguments=(--machine q35 --arch x86_64 --virttype kvm)
else
	echo "no hardware acceleration: $reason"
fi
virtqemud -d --config /etc/libvirt/virtqemud.conf
until virsh version >/dev/null; do sleep 0.2; done
virsh domcapabilities "${arguments[@]}" >"$to/virsh_domcapabilities.xml"
virsh hypervisor-cpu-baseline --features "$to/virsh_domcapabilities.xml" "${arguments[@]}" >"$to/supported_features.xml"
virsh capabilities >"$to/capabilities.xml"
