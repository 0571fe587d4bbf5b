"""Exports of requests by hand."""

import pytest
from focus_rows import SOLORA, hold_products, rows_of
from stores import log_of

from tenfold.export import check_focus, export_focus
from tenfold.ledger import attribute
from tenfold.prices import price_book


@pytest.fixture
def exported(tmp_path):
    """Export requests priced by a book given as text; gives the file's rows."""

    def make(rows, prices=SOLORA, own="", name="f.csv", **options):
        base, over = tmp_path / "base", tmp_path / "own"
        base.mkdir(exist_ok=True)
        over.mkdir(exist_ok=True)
        (base / "p.toml").write_text(prices)
        for part, text in ({"contract.toml": own} if isinstance(own, str) else own).items():
            (over / part).write_text(text)
        book = price_book(base, overlay=over) if own else price_book(base)
        rows = [{"request_id": f"r{number}", **row} for number, row in enumerate(rows)]
        make.ledger = attribute(log_of(rows, book.thresholds), book)
        make.made = export_focus(make.ledger, tmp_path / name, **options)
        make.path = tmp_path / name
        found = rows_of(make.path)
        hold_products(found)
        assert not check_focus(make.path).findings
        return found

    return make
