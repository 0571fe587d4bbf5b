"""What a model of one's own costs whatever it answers: hosting by the hour, training and labels from time to time."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple, cast

from tenfold.ledger.session import DAYS_PER_MONTH, Session
from tenfold.levers.base import Assumed
from tenfold.money import PUSD_PER_USD
from tenfold.store import steps

_HOUR = timedelta(hours=1)


class Charges(NamedTuple):
    """Fixed charges over a log's window, exact; all in pUSD.

    Args:
        hours: From the first to the last billed request.
        days: Calendar days of the window.
        hosting_per_hour: What an hour of hosting costs.
        training: What training the student once costs.
        labels: What the labels for it cost, at today's model.
        retrain_days: Days until both are due again.
    """

    hours: Fraction
    days: int
    hosting_per_hour: Fraction
    training: Fraction
    labels: Fraction
    retrain_days: Fraction

    @property
    def hosting(self) -> Fraction:
        """Hosting over the window."""
        return self.hosting_per_hour * self.hours

    @property
    def once(self) -> Fraction:
        """Training and labels, each time."""
        return self.training + self.labels

    def in_window(self, amount: Fraction) -> Fraction:
        """Give the window's share of what falls due every ``retrain_days``.

        Args:
            amount: What is due each time.

        Returns:
            amount x days / retrain_days.
        """
        return amount * self.days / self.retrain_days

    @property
    def total(self) -> int:
        """All of it over the window, rounded half even."""
        return round(self.hosting + self.in_window(self.once))

    def retrained_every(self, months: int) -> int:
        """Give the window's charges if the student lasts longer or shorter.

        Args:
            months: Months of 30.4 days until it is trained again.

        Returns:
            pUSD, rounded half even.
        """
        return self._replace(retrain_days=DAYS_PER_MONTH * months).total

    def break_even(self, gross: int, requests: int) -> Fraction | None:
        """Give the requests a month from which the student pays: N* = F / (mean saving - hosting a request).

        Args:
            gross: What its prices save over the window, before fixed charges.
            requests: Requests that it answered in it.

        Returns:
            N*, with F the monthly share of training and labels, and hosting as the window had it for each request. None
            where a request saves no more than its hosting costs: it never pays.

        Source:
            levers.md 7 (ii).
        """
        per_request = (gross - self.hosting) / requests if requests else Fraction(0)
        return self.once * DAYS_PER_MONTH / self.retrain_days / per_request if per_request > 0 else None

    def payback_months(self, gross: int) -> Fraction | None:
        """Give the months until the first training and its labels are paid.

        Args:
            gross: What its prices save over the window, before fixed charges.

        Returns:
            Months of 30.4 days; None where hosting costs as much as is saved: never.
        """
        a_day = (gross - self.hosting) / self.days if self.days else Fraction(0)
        return self.once / (a_day * DAYS_PER_MONTH) if a_day > 0 else None


def charges(session: Session, assumed: Assumed, now_pusd: int, requests: int) -> Charges:
    """Take the charges from the assumptions and the log's window.

    Args:
        session: The priced session.
        assumed: The lever's assumptions.
        now_pusd: What the requests that the student answers cost now.
        requests: How many they are.

    Returns:
        The charges.
    """
    row = session.engine.fetch(steps.filled("lever_distill_window")).row(0, named=True)
    span = row["last_ts"] - row["first_ts"] if row["first_ts"] is not None else timedelta(0)
    days = session.window.dates([row[key] for key in ("first_day", "last_day") if row[key] is not None])
    values = assumed.values
    mean = Fraction(now_pusd, requests) if requests else Fraction(0)
    return Charges(
        Fraction(span // timedelta(microseconds=1), _HOUR // timedelta(microseconds=1)),
        len(days),
        _pusd(values["hosting_usd_per_hour"]),
        _pusd(values["training_usd"]),
        cast("int", values["labels"]) * mean,
        Fraction(cast("int", values["retrain_days"])),
    )


def _pusd(usd: object) -> Fraction:
    return Fraction(cast("Decimal", usd)) * PUSD_PER_USD
