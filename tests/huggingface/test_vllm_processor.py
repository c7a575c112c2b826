"""Constraints in a vLLM server, with a stand-in of its documented interface for logits processors."""

import importlib
import json
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import pytest
import torch

from fairseq_llrnn.errors import OptionError

pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[hf]'")

from tiny_tokenizers import tiny_tokenizer

from fairseq_llrnn.huggingface import BackgroundProcessor

TOKENIZER = tiny_tokenizer("byte_level")
EOS, K = TOKENIZER.eos_token_id, len(TOKENIZER)
ROWS = K + 13  # of a softmax that is padded
SCHEMA = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
REQUESTS = [
    ({"constraint_regex": "(yes|no)( (yes|no))*"}, 6, r"(yes|no)( (yes|no))*"),
    ({"constraint_regex": "[0-9]{2}", "constraint_after": ":"}, 9, r"[^:]*:[0-9]{2}"),
    ({"constraint_grammar": 'start: "a" start "b" | "ab"'}, 9, r"a+b+"),
    ({"constraint_grammar": 'S -> "the" "cat" | "yes"'}, 6, r"the cat|yes"),
    ({"constraint_json_schema": SCHEMA}, 20, r"\{.*\}"),
    ({"constraint_regex": "x{9}"}, 4, r""),  # no text is short enough
    (None, 5, None),
    ({"another": 1}, 5, None),
]


class Interface(ABC):
    """The methods that vLLM's LogitsProcessor declares."""

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        return None

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        return True

    @abstractmethod
    def apply(self, logits: torch.Tensor, ctx: Any) -> torch.Tensor: ...


@pytest.fixture(scope="module")
def module() -> Iterator[ModuleType]:
    parts = "vllm.v1.worker.gpu.sample.logits_processor".split(".")
    with pytest.MonkeyPatch.context() as patch:
        for number in range(1, len(parts) + 1):
            name = ".".join(parts[:number])
            patch.setitem(sys.modules, name, sys.modules.get(name, ModuleType(name)))
        sys.modules[name].LogitsProcessor = Interface  # type: ignore[attr-defined]
        sys.modules.pop("fairseq_llrnn.huggingface.vllm_processor", None)
        yield importlib.import_module("fairseq_llrnn.huggingface.vllm_processor")
        sys.modules.pop("fairseq_llrnn.huggingface.vllm_processor")


@pytest.fixture
def config(tmp_path: Path) -> Any:
    TOKENIZER.save_pretrained(tmp_path)
    model = SimpleNamespace(tokenizer=str(tmp_path), tokenizer_revision=None, trust_remote_code=False)
    return SimpleNamespace(model_config=model, speculative_config=None)


class Request(NamedTuple):
    number: int
    params: Any
    written: list[int]


def params(extra_args: Any = None, max_tokens: int = 5, stops: Any = ()) -> Any:
    return SimpleNamespace(extra_args=extra_args, max_tokens=max_tokens, all_stop_token_ids={EOS, *stops})


def logits_after(request: Request) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * request.number + len(request.written))
    return torch.randn(ROWS, generator=generator)


class Slots:
    """Requests in slots, with the tokens of prompts and texts, and a processor."""

    def __init__(self, module: ModuleType, config: Any, size: int) -> None:
        self.tokens, self.prompts = torch.full((size, 64), 9, dtype=torch.int32), np.zeros(size, dtype=np.int32)
        states = SimpleNamespace(
            all_token_ids=SimpleNamespace(gpu=self.tokens), prompt_len=SimpleNamespace(np=self.prompts)
        )
        self.processor = module.ConstraintProcessor(config, states)

    def add(self, slot: int, request: Request) -> bool:
        self.prompts[slot] = 2 + slot
        self.tokens[slot] = 9  # of a former request
        return bool(self.processor.add_request(slot, request.params))

    def apply(self, requests: dict[int, Request], logits: torch.Tensor) -> torch.Tensor:
        """requests: by slot, in the order of the rows."""
        for slot, request in requests.items():
            begin = int(self.prompts[slot])
            self.tokens[slot, begin : begin + len(request.written)] = torch.tensor(request.written, dtype=torch.int32)
        lengths = [int(self.prompts[slot]) + len(request.written) for slot, request in requests.items()]
        context = SimpleNamespace(idx_mapping_np=np.array([*requests]), seq_lens_upper_bound_np=np.array(lengths))
        return self.processor.apply(logits, context)


def serve(slots: Slots, requests: list[Request], size: int, seed: int) -> None:
    """Write all texts. Rows are in another order at each step, and requests leave and return."""
    generator = torch.Generator().manual_seed(seed)
    waiting, running = list(requests), dict[int, Request]()
    while waiting or running:
        for slot, request in list(running.items()):
            if EOS in request.written or len(request.written) == request.params.max_tokens:
                del running[slot]
            elif int(torch.randint(4, (1,), generator=generator)) == 0:
                waiting.append(running.pop(slot))
        for slot in range(size):
            if slot not in running and waiting:
                request = running[slot] = waiting.pop(0)
                extra = request.params.extra_args
                assert slots.add(slot, request) == (extra is not None and "another" not in extra)
        order = [[*running][at] for at in torch.randperm(len(running), generator=generator).tolist()]
        running = {slot: running[slot] for slot in order}
        if not running:
            continue
        plain = torch.stack([logits_after(one) for one in running.values()])
        logits = slots.apply(running, plain.clone())
        for row, one in enumerate(running.values()):
            if one.params.extra_args is None or "another" in one.params.extra_args:
                assert torch.equal(logits[row], plain[row])
            one.written.append(int(logits[row].softmax(0).multinomial(1, generator=generator)))


@pytest.mark.parametrize("slots", [1, 4])
@pytest.mark.parametrize("seed", [1, 2])
def test_each_request_has_its_constraint(module: ModuleType, config: Any, slots: int, seed: int) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")
    requests = [Request(i, params(*REQUESTS[i % len(REQUESTS)][:2]), []) for i in range(2 * len(REQUESTS))]
    serve(Slots(module, config, slots), requests, slots, seed)
    for request in requests:
        pattern = REQUESTS[request.number % len(REQUESTS)][2]
        if pattern is not None:
            assert request.written[-1] == EOS
            assert re.fullmatch(pattern, TOKENIZER.decode(request.written[:-1]), re.DOTALL)


def test_slots_without_a_text_yet_and_unused_ones(module: ModuleType, config: Any) -> None:
    """A prompt that is read in parts has no text before its last part, and vLLM warms up without requests."""
    slots = Slots(module, config, 2)
    request = Request(0, params({"constraint_regex": "a+"}), [])
    slots.add(0, request)
    states = SimpleNamespace(idx_mapping_np=np.array([0, 1]), seq_lens_upper_bound_np=np.array([1, 5]))
    allowed = slots.processor.apply(torch.zeros(2, ROWS), states).isfinite()
    assert not allowed[0, EOS] and 0 < allowed[0].sum() < K and allowed[1].all()


def test_speculative_decoding_is_an_error(module: ModuleType, config: Any) -> None:
    config.speculative_config = object()
    with pytest.raises(OptionError, match="^ConstraintProcessor: expected no speculative decoding; leave --spec"):
        Slots(module, config, 1)


def test_the_logits_are_those_of_a_background_processor(module: ModuleType, config: Any) -> None:
    slots = Slots(module, config, 1)
    request = Request(3, params({"constraint_regex": "(yes|no)( (yes|no))*"}, 6), [])
    alone = BackgroundProcessor.from_regex("(yes|no)( (yes|no))*", TOKENIZER, unread=0, longest=6)
    slots.add(0, request)
    while EOS not in request.written:
        logits = logits_after(request).unsqueeze(0)
        log_p = alone(torch.tensor([request.written], dtype=torch.long), logits)
        assert torch.equal(slots.apply({0: request}, logits.clone()), log_p)
        request.written.append(int(log_p[0].argmax()))


@pytest.mark.parametrize(
    ("extra_args", "message"),
    [
        ({"constraint_regex": "(a"}, "from_regex"),
        ({"constraint_json_schema": "{"}, "from_json_schema"),
        ({"constraint_grammar": "/etc/hostname"}, "from_grammar"),
        ({"constraint_regex": "a", "constraint_grammar": "S -> a"}, "expected one of constraint_regex, const"),
        ({"constraint_regex": 3}, "as text, and .*, found"),
        ({"constraint_after": ":"}, "expected one of"),
        ({"constraint_regexp": "a"}, "expected one of .*, and constraint_after or none, found .*constraint_regexp"),
        ({"constraint_regex": "a", "constraint_within": "3"}, "expected one of"),
    ],
)
def test_a_constraint_that_cannot_be_read_is_refused(module: ModuleType, extra_args: Any, message: str) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")
    with pytest.raises(ValueError, match=message):
        module.ConstraintProcessor.validate_params(params(extra_args))


def test_readable_constraints_are_accepted(module: ModuleType) -> None:
    pytest.importorskip("llguidance", reason="llguidance is not installed: pip install '.[hf]'")
    for extra_args, *_ in REQUESTS:
        module.ConstraintProcessor.validate_params(params(extra_args))


def test_an_error_of_one_request_ends_that_request(
    module: ModuleType, config: Any, caplog: pytest.LogCaptureFixture
) -> None:
    slots = Slots(module, config, 2)
    requests = {slot: Request(slot, params({"constraint_regex": "a+"}), [5] * slot) for slot in range(2)}
    for slot, request in requests.items():
        slots.add(slot, request)
    for _ in range(2):
        allowed = slots.apply(requests, torch.zeros(2, ROWS)).isfinite()
        assert allowed[0].sum() > 0 and not allowed[0, EOS]
        assert allowed[1].nonzero().flatten().tolist() == [EOS]
    assert "A request ends with an incomplete text: BackgroundProcessor: expected" in caplog.text


def test_a_request_that_only_the_tokenizer_of_the_model_cannot_write_ends(
    module: ModuleType, config: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A request is checked with a tokenizer of bytes. An error with that of the model must not stop the server."""
    tokenizer = tiny_tokenizer("unigram")
    tokenizer.save_pretrained(config.model_config.tokenizer)
    wanted = params({"constraint_regex": "\a"})
    module.ConstraintProcessor.validate_params(wanted)
    slots = Slots(module, config, 2)
    requests = {0: Request(0, wanted, []), 1: Request(1, params(None), [])}
    assert [slots.add(slot, request) for slot, request in requests.items()] == [True, False]
    allowed = slots.apply(requests, torch.zeros(2, len(tokenizer))).isfinite()
    assert allowed[0].nonzero().flatten().tolist() == [tokenizer.eos_token_id] and allowed[1].all()
    assert caplog.text.count("A request ends without a text: from_regex: ") == 1


def test_other_ends_of_a_model_do_not_end_a_text(module: ModuleType, config: Any) -> None:
    arguments, stops = {"constraint_regex": "a+", "constraint_after": "x"}, [20, 30]
    both = [params(each, stops=stops) for each in (arguments, None)]
    slots = Slots(module, config, 2)
    requests = {row: Request(row, each, []) for row, each in enumerate(both)}
    for row, request in requests.items():
        slots.add(row, request)
    allowed = slots.apply(requests, torch.zeros(2, ROWS)).isfinite()
    assert allowed[1].all()
    assert not allowed[0, [EOS, *stops]].any() and allowed[0, 21]
