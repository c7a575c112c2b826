"""What the models of transformers with the log-linear head share: files, numbers of words, and searches.

causal_lm.py and seq2seq.py have the models. Each is a network of transformers (`model`, from AutoModel) and a
LogLinearHead (`head`). A saved model is one folder: config.json, model.safetensors and prior/.

Sizes: B sentences of a batch, N hypotheses, T tokens, K tokens of a tokenizer, V words of the prior, W words and
strings of its session, H width.

The tokens of a model are the words of its prior (`from_config`), or those of a tokenizer (`wrap`). In the second case
`words` maps a token to its word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from transformers import AutoConfig, GenerationConfig, GenerationMixin, LogitsProcessorList, PreTrainedConfig
from transformers import PreTrainedModel as TransformersModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES

from fairseq_llrnn.errors import DataError, OptionError, did_you_mean
from fairseq_llrnn.features.dictionary import PAD
from fairseq_llrnn.head.checks import check_token_ids
from fairseq_llrnn.head.head import LogLinearHead
from fairseq_llrnn.head.inputs import FeatureInput
from fairseq_llrnn.huggingface.background_weights import to_word_values
from fairseq_llrnn.huggingface.model_search import Search
from fairseq_llrnn.huggingface.processor import BackgroundProcessor
from fairseq_llrnn.huggingface.wrapping import Recipes, head_width, wrapped
from fairseq_llrnn.prior.prior import Prior

PRIOR = "prior"  # the folder next to the weights
IGNORED = -100  # the label that transformers leaves out of a loss
EMBEDDING = "head.embedding.weight"  # a second name of the output's feature weights if they are tied
SUPPORTED = ("greedy_search", "sample", "beam_search", "beam_sample")


class LogLinearConfig(PreTrainedConfig):
    """A model's configuration: that of its network (`text_config`), and settings of the head.

    Attributes:
        label_smoothing: ε in training, spread over all words that may come next.
        feature_input: whether the network reads words by their features. False: by a table of its own.
        tie_word_embeddings: whether the features that are read and predicted share their weights.
        head_size: H, the width of the states that the head reads.
        num_tokens: K, if the tokens are those of a tokenizer. None: they are the prior's words.
        start_token_id: the token before the first word, which the background does not read.
    """

    keys_to_ignore_at_inference = ["past_key_values"]
    sub_configs = {"text_config": AutoConfig}
    text_config: Any = None  # PreTrainedConfig, or its keys
    label_smoothing: float = 0.0
    feature_input: bool = True
    tie_word_embeddings: bool = False
    head_size: int | None = None
    num_tokens: int | None = None
    start_token_id: int | None = None

    def __post_init__(self, **kwargs: Any) -> None:
        if isinstance(self.text_config, dict):
            values = {name: value for name, value in self.text_config.items() if name != "model_type"}
            self.text_config = AutoConfig.for_model(self.text_config["model_type"], **values)
        super().__post_init__(**kwargs)

    def get_text_config(self, *args: Any, **kwargs: Any) -> PreTrainedConfig:
        """Return the configuration of the network, or of its decoder or encoder."""
        return self if self.text_config is None else self.text_config.get_text_config(*args, **kwargs)


class LogLinearModel(TransformersModel, GenerationMixin):
    """A network of transformers -> log-linear head. `logits` are log p of all tokens. −inf for forbidden ones."""

    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    accepts_loss_kwargs = True  # num_items_in_batch
    # the network itself checks these
    _supports_sdpa = _supports_flash_attn = _supports_flex_attn = _supports_attention_backend = True
    _tied_weights_keys = {EMBEDDING: "head.output.weight"}
    auto_model: Any  # the class of transformers that has the network with its softmax
    words: Tensor  # (K,)
    model: Any
    head: LogLinearHead

    @classmethod
    def _from_network(cls, network: PreTrainedConfig, prior: Prior, tied: bool, settings: dict[str, Any]) -> Self:
        """Make a model of the prior's words with random weights.

        Args:
            network: the configuration of the network inside, over the prior's words.
            tied: whether the features that are read and predicted share their weights by default, if they can.
            settings: of the model's configuration.
        """
        width, embedding = head_width(cls.auto_model, network)
        ties = tied and width == embedding and settings.get("feature_input", True)
        ties = ties and prior.input.features.names == prior.output.features.names
        start = prior.index("</s>")
        settings = {"tie_word_embeddings": ties, "head_size": width, "start_token_id": start, **settings}
        return cls(cls.config_class(text_config=network, **settings), prior)

    @classmethod
    def check_network(cls, config: Any) -> None:
        """Check the configuration of a network. A causal model over an encoder would read the words that it predicts.

        Raises:
            TypeError: no configuration. OptionError: the other kind of network, or one that sees the next words.
        """
        name, is_translator = cls.__name__, cls.config_class.is_encoder_decoder
        if not isinstance(config, PreTrainedConfig):
            raise TypeError(
                f"{name}: expected the configuration of a network, such as GPT2Config(), found a "
                f"{type(config).__name__}; pass it first, and then the prior"
            )
        if config.is_encoder_decoder != is_translator:
            expected = "an encoder-decoder" if is_translator else "a network without an encoder"
            other = "LogLinearForCausalLM" if is_translator else "LogLinearForSeq2SeqLM"
            raise OptionError(f"{name}: expected {expected}, found {config.model_type}; use {other}")
        reads_both_sides = config.model_type in {*MODEL_FOR_MASKED_LM_MAPPING_NAMES, "bert-generation", "xlnet"}
        can_be_causal = config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and hasattr(config, "is_decoder")
        is_causal = is_translator or (can_be_causal and config.is_decoder) or getattr(config, "causal", False)
        if reads_both_sides and not is_causal:
            raise OptionError(
                f"{name}: expected a network that reads from left to right, found {config.model_type}, which also sees "
                f"the next words; {'set is_decoder=True in its configuration' if can_be_causal else 'use another'}"
            )

    @classmethod
    def _check_settings(cls, prior: Prior, settings: Mapping[str, Any]) -> None:
        if not isinstance(prior, Prior):
            raise TypeError(f"{cls.__name__}: expected a prior, found {prior!r:.60}; read it with Prior.load")
        known = {field.name for field in fields(cls.config_class)}
        for name in settings.keys() - known:
            advice = did_you_mean(name, known, "leave it out")
            raise OptionError(f"{cls.__name__}: {name}: expected a setting of {cls.config_class.__name__}; {advice}")
        if not 0.0 <= settings.get("label_smoothing", 0.0) < 1.0:
            smoothing = settings["label_smoothing"]
            raise OptionError(f"{cls.__name__}: label_smoothing {smoothing}: expected a number from 0 to less than 1")

    @classmethod
    def wrap(
        cls, pretrained: nn.Module, tokenizer: Any, recipe: Recipes = None,
        constraint: BackgroundProcessor | None = None,
    ) -> Self:  # fmt: skip
        """Put the head on a pretrained model.

        The model starts as the softmax, times the background if that depends on the context. A static background is
        divided out: the biases of words start at −log b. All other feature weights start at 0. The background of an
        encoder-decoder depends on no source.

        Args:
            pretrained: a model of transformers with a softmax. Its network becomes part of the new model.
            tokenizer: its tokenizer. Token strings are the symbols of the prior.
            recipe: what the prior is built from, a Recipe, its keys or a file. Texts in it are plain text, which the
                tokenizer splits. None: no features but the indicators of tokens, and a uniform background.
            constraint: multiplies the background, also in training: all texts are of this set, the prompt included.
                Made by from_regex, from_grammar (in our format), from_words or a product of these.

        Raises:
            OptionError: logits that are not linear in the last hidden states, a recipe without an indicator for each
                token, or a constraint that is no automaton over its tokens. DataError: a tokenizer without an end of
                sentence.
        """
        model: Self = wrapped(cls, pretrained, tokenizer, recipe, constraint)
        return model

    def _make(self, network: nn.Module, prior: Prior | None, source_size: int | None = None) -> None:
        """Make network and head. prior: None for the one next to the weights."""
        config = self.config
        prior = Prior.load(Path(config.name_or_path) / PRIOR) if prior is None else prior
        self.model = network
        table = self._read_embeddings() if config.feature_input else None
        embedding = None if table is None else FeatureInput(table.embedding_dim, config.tie_word_embeddings)
        with torch.device("cpu"):  # `from_pretrained` makes tensors without values, but the head computes some
            self.head = LogLinearHead(prior, config.head_size, embedding=embedding, source_size=source_size)
        if config.num_tokens is not None:
            self.register_buffer("words", torch.zeros(config.num_tokens, dtype=torch.long))
        self._fixed = [name for name, weight in self.named_parameters() if not weight.requires_grad]

    def _read_embeddings(self) -> Any:
        """The network's table of the words that the head predicts."""
        return self.model.get_input_embeddings()

    def _init_weights(self, module: nn.Module) -> None:
        """Leave the head as it is. The network initialises itself."""

    def is_custom_code(self) -> bool:
        """Return whether the network is custom code. If not, transformers computes buffers that a file leaves out."""
        return bool(self.model.is_custom_code())

    # ---- numbers ----------------------------------------------------------------------------------------------------

    @property
    def is_wrapped(self) -> bool:
        """Whether the tokens are those of a tokenizer."""
        return getattr(self.config, "num_tokens", None) is not None

    def to_words(self, **tokens: Tensor) -> Tensor:
        """The words of tokens. The argument's name is for messages.

        Raises:
            DataError: a number of no token, or strings of another prior.
        """
        ((name, numbers),) = tokens.items()
        if not self.is_wrapped:
            check_token_ids(self.head, **tokens)
            return numbers
        if not torch.compiler.is_compiling():
            wrong = (numbers < 0) | (numbers >= len(self.words))
            if bool(wrong.any()):
                raise DataError(
                    f"{name}: expected tokens from 0 to {len(self.words) - 1:,}, found {int(numbers[wrong][0]):,}; use "
                    "the tokenizer that the model was wrapped with"
                )
        return self.words[numbers]

    def to_targets(self, **labels: Tensor) -> Tensor:
        """The words of labels, `<pad>` for −100."""
        ((name, numbers),) = labels.items()
        ignored = numbers == IGNORED
        return self.to_words(**{name: numbers.masked_fill(ignored, self.head.pad)}).masked_fill(ignored, self.head.pad)

    def to_tokens(self, values: Tensor) -> Tensor:
        """Values of words for all tokens: (…, W) -> (…, K)."""
        return values[..., self.words] if self.is_wrapped else values

    def token_of(self, word: int) -> int:
        """The token of a word that has one."""
        return int((self.words == word).nonzero()[0]) if self.is_wrapped else word

    def resize_token_embeddings(self, *_: Any, **__: Any) -> nn.Module:
        """Raises DataError: the words are those of the prior."""
        raise DataError(
            f"{type(self).__name__}.resize_token_embeddings: not supported, as the words are those of the prior; build "
            "a prior over the other dictionary, and a model with it"
        )

    def _loss(self, batch: Any, targets: Tensor, num_items_in_batch: Tensor | int | None) -> Tensor:
        smoothing = self.config.label_smoothing if self.training else 0.0
        if num_items_in_batch is None:
            return self.head.loss_of(batch, targets, smoothing)
        return self.head.loss_of(batch, targets, smoothing, reduction="sum") / num_items_in_batch

    def _logits(self, batch: Any) -> Tensor:
        """log p of all tokens: (B, T, K). A gradient towards forbidden ones is an error."""
        logits = self.to_tokens(self.head.word_log_probs(batch))
        if logits.requires_grad and not torch.compiler.is_compiling():
            forbidden, name = logits.detach().isneginf(), type(self).__name__
            logits.register_hook(lambda gradient: check_smoothed_gradient(name, forbidden, gradient))
        return logits

    def _needs_logits(self, labels: Tensor | None) -> bool:
        """Whether to return logits: not with a loss in training, nor if their number varies with the source."""
        with_loss = not (self.training or torch.is_grad_enabled() or self.head.has_source_strings)
        return labels is None or with_loss

    # ---- generate ---------------------------------------------------------------------------------------------------

    def _new_search(self, config: GenerationConfig, model_kwargs: dict[str, Any], sentences: int) -> Search:
        raise NotImplementedError

    def _prepare_cache_for_generation(
        self, generation_config: GenerationConfig, model_kwargs: dict[str, Any], generation_mode: Any, batch_size: int,
        max_cache_length: int,
    ) -> None:  # fmt: skip
        """Also make what the search remembers. Raises DataError for assisted generation and other modes."""
        if generation_mode not in SUPPORTED:
            raise DataError(
                f"{type(self).__name__}.generate: {str(generation_mode.value).replace('_', ' ')} is not supported; use "
                "greedy search, sampling or beam search"
            )
        model_kwargs["search"] = self._new_search(generation_config, model_kwargs, batch_size)
        super()._prepare_cache_for_generation(
            generation_config, model_kwargs, generation_mode, batch_size, max_cache_length
        )

    def _next(self, hidden: Tensor, search: Search) -> Tensor:
        """log p of the next token: (N, H) -> (N, 1, K)."""
        head, state = self.head, search.now
        step = head.step(hidden.masked_fill(search.ended.unsqueeze(1), 0.0), state)  # which may be NaN after an end
        values = to_word_values(step.word_log_probs(), step.view.columns, head.prior)
        return self.to_tokens(values).unsqueeze(1)

    def _get_logits_processor(self, *args: Any, **kwargs: Any) -> LogitsProcessorList:
        """`Search.mask`, then transformers' own processors: not in the logits, which a beam search normalises again.

        A constraint without `longest` ends its texts within the limit of the search, if it is no step of a longer text.
        """
        config, prompt = kwargs["generation_config"], kwargs["input_ids_seq_length"]
        most = None if config.max_length == prompt + 1 else config.max_length
        kwargs["logits_processor"] = [
            each.for_search(config.eos_token_id, prompt, most if each.longest is None else None)
            if isinstance(each, BackgroundProcessor) else each
            for each in kwargs["logits_processor"] or []
        ]  # fmt: skip
        processors: LogitsProcessorList = super()._get_logits_processor(*args, **kwargs)
        processors.insert(0, kwargs["model_kwargs"]["search"].mask)
        return processors

    # ---- files ------------------------------------------------------------------------------------------------------

    def save_pretrained(self, save_directory: Path | str, *args: Any, push_to_hub: bool = False, **kwargs: Any) -> None:
        """Raises OptionError: push_to_hub, which would leave the prior out."""
        if push_to_hub:
            raise OptionError("save_pretrained: push_to_hub=True uploads no prior; call model.push_to_hub(…) instead")
        super().save_pretrained(save_directory, *args, **kwargs)
        if kwargs.get("is_main_process", True):
            self.head.prior.save(Path(save_directory) / PRIOR)

    @classmethod
    def from_pretrained(cls, folder: Path | str, *args: Any, **kwargs: Any) -> Self:
        """Load a folder that `save_pretrained` wrote.

        Raises:
            DataError: there is no such folder, or it has a model of another class. PriorError: there is no prior next
                to the weights, or they were trained with another one.
        """
        if not Path(folder).is_dir():
            raise DataError(
                f"{cls.__name__}: expected a folder, found none at {folder}; a model of the Hub has to be downloaded "
                "first, e.g. by huggingface_hub.snapshot_download"
            )
        expected = cls.config_class.model_type
        found = cls.config_class.get_config_dict(folder)[0].get("model_type", expected)
        if found != expected:
            raise DataError(
                f"{folder}: expected a folder of {cls.__name__}.save_pretrained, found a model of type {found}; load "
                "another model with its own class, and call wrap, or train one of an earlier version again"
            )
        model: Self = super().from_pretrained(folder, *args, **kwargs)
        (model[0] if isinstance(model, tuple) else model)._after_loading()
        return model

    def _after_loading(self) -> None:
        self.head.check_prior()
        for name in self._fixed:  # loading forgets that they are not trained
            self.get_parameter(name).requires_grad_(False)

    def named_non_persistent_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """Those that loading makes again: not the ones that the head has computed from its prior."""
        for name, buffer in super().named_non_persistent_buffers(*args, **kwargs):
            if not name.startswith("head."):
                yield name, buffer


def check_smoothed_gradient(name: str, forbidden: Tensor, gradient: Tensor) -> None:
    """Raise OptionError for a gradient of log p, (B, T, K), where log p is −inf."""
    if bool((gradient.ne(0) & forbidden).any()):
        raise OptionError(
            f"{name}: not supported with label_smoothing_factor, which smooths towards words that the "
            "background forbids (log p is −inf); set it to 0, and label_smoothing of the model's configuration instead"
        )


def check_first_token(start: int, tokens: Tensor, expected: str) -> None:
    """Raise DataError where a row of tokens (B, T) does not begin as in training."""
    first = tokens[:, 0]
    if not torch.compiler.is_compiling() and bool(first.ne(start).any()):
        other = int(first[first != start][0])
        raise DataError(f"{expected} to be {start}, as in training, found {other}; give {start}")


def special_tokens(prior: Prior, end: int) -> dict[str, int]:
    """Those of a configuration over the prior's words."""
    return {"bos_token_id": end, "eos_token_id": end, "pad_token_id": prior.index(PAD)}
