# KubeVirt's programs that talk to the API server only. The context is the folder of the product "kubevirt".
FROM debian:bookworm-slim
COPY bin/virt-operator bin/virt-api bin/virt-controller /usr/bin/
USER 1001
