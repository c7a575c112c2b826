"""docs/public-api.txt is the public interface of the code, so that a change of it is seen in review."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from example_modules import SCRIPTS, load

pytest.importorskip("transformers")  # fairseq_llrnn.huggingface is listed, too
(list_api,) = load(SCRIPTS, "list_api")


def test_the_committed_listing_is_the_interface() -> None:
    assert list_api.listing() == list_api.LISTING.read_text(encoding="utf-8"), "run `python scripts/list_api.py`"


def test_a_listing_that_differs_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(list_api, "LISTING", tmp_path / "public-api.txt")
    monkeypatch.setattr(list_api, "listing", lambda: "one")
    monkeypatch.setattr("sys.argv", ["list_api.py"])
    assert list_api.main() == 0 and list_api.LISTING.read_text() == "one"
    monkeypatch.setattr(list_api, "listing", lambda: "two")
    monkeypatch.setattr("sys.argv", ["list_api.py", "--check"])
    assert list_api.main() == 1
    assert "public-api.txt differs from the code; run `python scripts/list_api.py`" in capsys.readouterr().err


def test_names_are_what_a_module_exports_or_defines() -> None:
    import fairseq_llrnn.extend
    import fairseq_llrnn.functional
    import fairseq_llrnn.prior

    assert list_api.public_names(fairseq_llrnn.functional) == ["log_linear_nll", "outside_autocast", "to_autocast"]
    assert {"Prior", "Recipe"} <= {*list_api.public_names(fairseq_llrnn.prior)}
    assert "register_background" in list_api.public_names(fairseq_llrnn.extend)


def test_options_are_listed_without_their_descriptions_and_addresses() -> None:
    def value(width: "Annotated[int, Doc('of a row')]", of=len, *rest: int) -> "Annotated[str, 1]": ...  # type: ignore[name-defined,no-untyped-def,empty-body] # noqa: F821

    assert list_api.signature(value) == "(width: int, of=len, *rest: int) -> str"
    assert list(list_api.entries("VALUE", SimpleNamespace())) == ["VALUE"]
