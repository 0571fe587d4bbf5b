"""What a lever of hosting says first where it has no figure."""

from tenfold.levers.hosting import without


def test_only_a_log_without_self_hosted_requests_is_said_to_have_none():
    assert without("not_measurable", "no request of it has output tokens").advice.first_action == "See the reason."
