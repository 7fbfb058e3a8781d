import pytest

from vignette_analysis.data.topics import matches


# The examples of MQTT 5, section 4.7.
@pytest.mark.parametrize(
    ("topic_filter", "topic", "want"),
    [
        ("sport/tennis/player1/#", "sport/tennis/player1", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/ranking", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
        ("sport/#", "sport", True),
        ("#", "anything/at/all", True),
        ("#", "/NOR/NOR-UNIT001/NOR-S001/location", True),
        ("sport/tennis/+", "sport/tennis/player1", True),
        ("sport/tennis/+", "sport/tennis/player1/ranking", False),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("#", "$SYS/broker", False),
        ("+/monitor/Clients", "$SYS/monitor/Clients", False),
        ("$SYS/#", "$SYS/monitor/Clients", True),
        ("sport/#/ranking", "sport/tennis/ranking", False),
        ("/NOR/+/+/location", "/NOR/NOR-UNIT001/NOR-S001/location", True),
        ("NOR/#", "/NOR/x", False),
        ("a/b", "a", False),
        ("a", "a/b", False),
    ],
)
def test_filters_cover_the_topics_that_the_standard_says(topic_filter, topic, want):
    assert matches(topic_filter, topic) is want
