"""The environment of a run record (runapi.Environment) as names and values. Reads the typed and the older flat form."""

# Fields of a host: the name of its value, and its unit if it has one.
_HOST = {
    "kernel": "kernel",
    "os": "operating system",
    "architecture": "architecture",
    "cpus": "processors",
    "cpuModel": "processor",
    "memoryBytes": "memory",
    "tcpCongestionControl": "TCP congestion control",
    "bootID": "boot",
    "kubelet": "kubelet",
    "containerRuntime": "runtime",
}


def flat(environment: dict | None) -> dict[str, str]:
    """Give every value a name such as host/NODE (the host that a node ran on), kernel/HOST or image/NODE/APP."""
    environment = environment or {}
    if all(isinstance(value, str) for value in environment.values()):
        return environment
    found = {f"platform/{name}": value for name, value in environment.get("platform", {}).items()}
    if "kubernetes" in environment:
        found["kubernetes"] = environment["kubernetes"]
    for host in environment.get("hosts") or []:
        found |= {f"host/{node}": host["name"] for node in host.get("nodes") or []}
        found |= {f"{name}/{host['name']}": _value(field, host[field]) for field, name in _HOST.items() if field in host}
    for image in environment.get("images") or []:
        place = [image[key] for key in ("node", "container", "host") if image.get(key)]
        found["/".join(["image", *place])] = f"{image['image']} {image['id']}"
    return found


def _value(field: str, value: object) -> str:
    return f"{value / 2**30:.1f} GiB" if field == "memoryBytes" and isinstance(value, int) else str(value)
