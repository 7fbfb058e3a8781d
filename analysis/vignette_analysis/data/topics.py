"""MQTT topic filters (MQTT 3.1.1 and 5, section 4.7)."""


def matches(topic_filter: str, topic: str) -> bool:
    """Report whether a topic filter with + and # covers a topic."""
    want, have = topic_filter.split("/"), topic.split("/")
    if topic.startswith("$") and want[0] in ("+", "#"):
        return False  # 4.7.2: wildcards at the first level do not cover topics that begin with $
    for level, part in enumerate(want):
        if part == "#":
            return level == len(want) - 1
        if level >= len(have) or part not in ("+", have[level]):
            return False
    return len(have) == len(want)
