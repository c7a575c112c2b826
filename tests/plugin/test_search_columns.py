"""What a step's columns stand for is an explicit record, and a search leaves nothing to the next one."""

from typing import Any

import pytest
import torch
from automaton_prior import with_grammar
from tiny_world import World, evaluated

from fairseq_llrnn.errors import DataError
from fairseq_llrnn.plugin.search.generator import ColumnGenerator
from fairseq_llrnn.prior.prior import Prior


def test_a_search_knows_nothing_of_the_one_before(world: World) -> None:
    """Not its limit, its columns nor its hypotheses."""
    setting = evaluated(world.train_args(), with_grammar(Prior.load(world.prior("prior"))))
    dictionary = setting.task.dictionary

    def sample(rows: int) -> dict[str, Any]:
        return {"net_input": {"src_tokens": torch.full((rows, 1), dictionary.eos()), "src_lengths": torch.ones(rows)}}

    def found(generator: ColumnGenerator, rows: int) -> list[Any]:
        hypotheses = generator.generate([setting.model], sample(rows))
        return [[(h["tokens"].tolist(), h["score"].item()) for h in of_sentence] for of_sentence in hypotheses]

    for over_candidates in (True, False):
        once, twice = (
            ColumnGenerator([setting.model], dictionary, over_candidates=over_candidates, beam_size=3, max_len_b=6)
            for _ in range(2)
        )
        with pytest.raises(DataError, match="expected a complete string"):
            too_long = torch.tensor([[dictionary.index("la")] + [dictionary.index("verte")] * 5])
            twice.generate([setting.model], sample(1), prefix_tokens=too_long)
        found(twice, 3)
        assert found(twice, 2) == found(once, 2)
