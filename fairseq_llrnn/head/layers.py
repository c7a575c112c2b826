"""What a head is made of: output layer, embedding, background, rows for slots, experts and open words.

Sizes: B batch, T time, N hypotheses, V words, H hidden width, D embedding width, E encoder width, R input signatures.
search.py and head.py compute with them.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from fairseq_llrnn.backgrounds.base import NEGATIVE_INFINITY, Background
from fairseq_llrnn.backgrounds.masses import class_log_sums
from fairseq_llrnn.errors import DataError, OptionError
from fairseq_llrnn.evidence.slots import SlotRows
from fairseq_llrnn.experts.features import ExpertFeatures
from fairseq_llrnn.experts.panel import Panel
from fairseq_llrnn.features.dictionary import EOS, PAD, UNK
from fairseq_llrnn.head import target_terms
from fairseq_llrnn.head.class_rows import rows_of_classes, rows_of_slots, widened
from fairseq_llrnn.head.expert_terms import refuse_other_experts
from fairseq_llrnn.head.fingerprint import check_fingerprint, check_numbers, fingerprint_of
from fairseq_llrnn.head.input import HeadInput
from fairseq_llrnn.head.records import Rows
from fairseq_llrnn.head.tree import tree_in_checkpoint
from fairseq_llrnn.head.zero_mass import FIX_ZERO_MASS, ShownWords, refuse_forbidden
from fairseq_llrnn.networks.characters import CharacterOptions
from fairseq_llrnn.open_vocabulary.mixture import OpenMixture
from fairseq_llrnn.open_vocabulary.neural_speller import SpellerSizes
from fairseq_llrnn.open_vocabulary.open_strings import OpenStrings, new_speller
from fairseq_llrnn.output.class_sampling import ClassSampler
from fairseq_llrnn.output.context_classes import strings_in
from fairseq_llrnn.output.learned_temperature import LearnedTemperature
from fairseq_llrnn.output.learned_tree import LearnedTreeLayer
from fairseq_llrnn.output.log_linear import LogLinearOutput
from fairseq_llrnn.output.tree_layer import TreeLayer
from fairseq_llrnn.prior.parts.evidence import EvidencePart
from fairseq_llrnn.prior.parts.open_vocabulary import open_table
from fairseq_llrnn.prior.prior import Prior
from fairseq_llrnn.trees.options import LEARNED, TreeOptions
from fairseq_llrnn.trees.tree import Tree


class HeadLayers(HeadInput):
    """The layers of a LogLinearHead, its embedding, and the check of weights that are loaded."""

    prior_fingerprint: Tensor
    log_sizes: Tensor  # (S,)

    def __init__(
        self,
        prior: Prior,
        hidden_size: int,
        *,
        embed_size: int | None = None,
        tie_embedding: bool = False,
        characters: CharacterOptions | None = None,
        source_size: int | None = None,
        experts: Panel | None = None,
        learn_temperature: bool = False,
        sampled_classes: int = 0,
        tree: Tree | TreeOptions | None = None,
        tree_rows: str = "free",
        sparse_gradients: bool = False,
        speller: SpellerSizes | None = None,
        speller_input: int | None = None,
    ) -> None:
        """
        Args:
            hidden_size: H, the width of the network's hidden states.
            embed_size: D, for `embed` by features ψ; None: the network embeds tokens itself, or characters do.
            tie_embedding: whether `embed` and the output share their weights per feature; D must be H then.
            characters: `embed` reads words by their characters (characters/embedding.py), too, if embed_size is given.
            source_size: E, the width of an encoder's states, for networks that read a source; None: a language model.
            experts: opened with this prior (experts/panel.py).
            learn_temperature: the network chooses how far a background of n-grams or an automaton counts
                (output/learned_temperature.py).
            sampled_classes: train with about so many signatures, drawn from the background; 0: with all of them.
            tree: over the signatures: a choice at each node leads to that of a word (output/tree_layer.py).
            tree_rows: those of its internal nodes: "free", or "composed" of the rows of what is below.
            sparse_gradients: of the weights of features in output and input, with a tree whose rows are free: sparse
                tensors, for optimisers that take such (torch's SGD, Adagrad, SparseAdam).
            speller: the sizes of the network that spells words, where the prior has an open vocabulary with one; None:
                those of `SpellerSizes()`.
            speller_input: the width of what it spells from, where that is not the hidden states (`batch`'s `spelling`).

        Raises:
            OptionError: options that exclude each other, or that the prior cannot have.
        """
        super().__init__()
        self.prior = prior
        self.num_words, self.hidden_size = len(prior.symbols), hidden_size
        self.pad, self.eos, self.unk = (prior.symbols.index(symbol) for symbol in (PAD, EOS, UNK))
        class_of = torch.from_numpy(prior.output.class_of.copy())
        self.output = LogLinearOutput(prior.output.features, class_of, hidden_size)
        self.embedding = None if embed_size is None else self._new_embedding(embed_size, tie_embedding)
        self.characters = None if characters is None else self._new_characters(characters, embed_size)
        self.background = prior.background(has_source=source_size is not None)
        self.background.gates(hidden_size)
        self.slot_rows: SlotRows | None = None
        if prior.find(EvidencePart) is not None and source_size is not None:
            self.slot_rows = SlotRows(source_size, hidden_size)
        self.opened: OpenMixture | None = None
        self.strings: OpenStrings | None = None
        table = open_table(prior)
        self.speller = new_speller(table, speller_input or hidden_size, speller)
        if table is not None:
            self.opened = OpenMixture(table.vocabulary, int(self.output.class_of[self.unk]))
            self.strings = OpenStrings(self.opened, table, self.num_words, self.unk, self.speller)
        self.experts: ExpertFeatures | None = None
        if experts is not None:
            self.experts = ExpertFeatures(experts, prior.output.features, hidden_size)
        self.temperature = self._new_temperature() if learn_temperature else None
        self.sampler: ClassSampler | None = None
        self.sparse_gradients = sparse_gradients
        self.tree = None if tree is None else self._new_tree(tree, tree_rows)
        self._check_sparse()
        if self.embedding is not None:
            self.embedding.sparse_gradients = sparse_gradients
        if sampled_classes:
            self.train_with_samples(sampled_classes)
        sizes = target_terms.log_class_sizes(self.background, [self.eos, self.unk])
        self.register_buffer("log_sizes", sizes, persistent=False)
        self.register_buffer("prior_fingerprint", fingerprint_of(prior))

    # ---- parts --------------------------------------------------------------------------------------------------

    def _new_temperature(self) -> LearnedTemperature:
        if not self.background.sparse or self.slot_rows is not None:
            raise OptionError(
                "--learn-background-temperature: expected a prior with n-grams or an automaton, and without evidence; "
                "build one with `llrnn prior --background ngram:…` or `automaton:…`, or leave the option out"
            )
        if self.experts is not None:
            raise OptionError("--learn-background-temperature: not supported with --expert; leave out one of them")
        return LearnedTemperature(self.hidden_size, self.output.rows.num_rows)

    def _new_tree(self, tree: Tree | TreeOptions, rows: str) -> TreeLayer:
        if self.experts is not None:
            raise OptionError("--output-tree: not supported with --expert; leave one of them out")
        log_mass = self._static_log_mass()
        if isinstance(tree, TreeOptions) and tree.kind == LEARNED:
            layer: TreeLayer = LearnedTreeLayer(tree, self.hidden_size, log_mass, rows)
        else:
            made = tree if isinstance(tree, Tree) else tree.build(log_mass.double().exp().numpy())
            layer = TreeLayer(made, self.hidden_size, log_mass, rows)
        layer.sparse_gradients = self.sparse_gradients
        return layer

    def _check_sparse(self) -> None:
        if self.sparse_gradients and (self.tree is None or self.tree.rows != "free"):
            found = "no --output-tree" if self.tree is None else f"--tree-rows {self.tree.rows}"
            raise OptionError(
                "--tree-sparse-gradients: expected --output-tree with --tree-rows free, so that an update needs the "
                f"rows of few signatures, found {found}; leave the option out"
            )

    def _static_log_mass(self) -> Tensor:
        """That of the signatures in the background without context, (S,); none of that of open classes."""
        weights = torch.from_numpy(self.prior.log_weights.copy()).unsqueeze(0)
        log_mass = class_log_sums(weights, self.output.class_of.cpu(), self.output.rows.num_rows).squeeze(0)
        if self.opened is not None:
            log_mass[self.opened.of_class] = NEGATIVE_INFINITY  # it is summed apart
        return log_mass

    def train_with_samples(self, expected: int) -> None:
        """Train with about `expected` signatures, drawn anew for every batch (output/class_sampling.py).

        Raises:
            OptionError: experts, which need all classes; a tree, which needs few.
        """
        others = {"--expert": self.experts is not None, "--output-tree": self.tree is not None}
        for other in [name for name, given in others.items() if given]:
            raise OptionError(f"--sampled-classes: not supported with {other}; leave one of them out")
        self.sampler = ClassSampler(self._static_log_mass(), expected).to(self.output.weight.device)

    # ---- checks ---------------------------------------------------------------------------------------------------

    def refuse_forbidden(
        self, log_prob: Tensor, targets: Tensor, ids: Tensor | None = None, fix: str = FIX_ZERO_MASS
    ) -> None:
        """Raise DataError for a target (B, T), but padding, whose log_prob (B, T) is −inf: its loss would be infinite.

        Args:
            ids: (B,) the samples' numbers, from zero. fix: what to do about it.
        """
        refuse_forbidden(log_prob, targets, ShownWords(self._word_of, self.pad, self.eos), ids, fix)

    def check_weights(self, state_dict: dict[str, Any], prefix: str) -> None:
        """Refuse weights that were trained beside another prior, other experts or options; `prefix` ends in a dot.

        Raises:
            PriorError, OptionError: with what differs. DataError: weights that are not finite, or too large.
        """
        check_numbers({f"{prefix}{name}": state_dict.get(f"{prefix}{name}") for name, _ in self.named_parameters()})
        check_fingerprint(self.prior_fingerprint, state_dict.get(f"{prefix}prior_fingerprint"), self.prior.folder)
        own = None if self.tree is None else self.tree.tree
        tree = tree_in_checkpoint(state_dict.get(f"{prefix}tree.parent"), own, self.learned is not None)
        if tree is not None and self.tree is not None and tree.internal != self.tree.internal:
            self.tree = self._new_tree(tree, self.tree.rows).to(self.output.weight)
        if self.learned is None:  # what training has counted is of no use to others
            for name in [name for name in state_dict if name.startswith(f"{prefix}tree.learner.")]:
                del state_dict[name]
        given = 0 if self.experts is None else len(self.experts.panel.experts)
        refuse_other_experts("--expert", "the checkpoint", state_dict.get(f"{prefix}experts.weight"), given)
        if self.temperature is not None:  # weights of no learned temperature begin as zeros, and change nothing
            for part, value in self.temperature.state_dict().items():
                state_dict.setdefault(f"{prefix}temperature.{part}", torch.zeros_like(value))
        elif f"{prefix}temperature.weight" in state_dict:
            raise OptionError(
                "--learn-background-temperature: expected this option, with which the checkpoint was trained; give it"
            )

        trained = f"{prefix}characters.network.embedding.weight" in state_dict
        if trained != (self.characters is not None):
            raise OptionError(
                f"--input-characters: expected {'cnn' if trained else 'none'}, with which the checkpoint was trained; "
                "give it, with the same sizes"
            )

    @property
    def learned(self) -> LearnedTreeLayer | None:
        """The tree, if training changes it."""
        return self.tree if isinstance(self.tree, LearnedTreeLayer) else None

    def check_prior(self) -> None:
        """Refuse weights that something else than `load_state_dict` has put here, if they are of another prior.

        Raises:
            PriorError: with both fingerprints.
        """
        check_fingerprint(fingerprint_of(self.prior), self.prior_fingerprint, self.prior.folder)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        self.check_weights(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    # ---- small parts ----------------------------------------------------------------------------------------------

    def _word_of(self, token: int) -> str:
        symbols = self.prior.session.target.symbols
        return symbols[token] if token < len(symbols) else UNK

    def _with_experts(self, background: Background, source: Tensor | None) -> Background:
        return background if self.experts is None else self.experts.bind(background, source)

    def _static_rows(self) -> Rows:
        """Those that are the same in all sentences."""
        rows = rows_of_classes(self.output, self.opened, self.sampler if self.training else None, self.tree)
        if self.speller is None or not self.training:
            return rows
        return replace(rows, speller_zero=self.speller.untouched())

    def _rows(
        self,
        background: Background,
        source_states: Tensor | None,
        sentence: Tensor | None,
        shared: Rows | None = None,
    ) -> Rows:
        """shared: of `_static_rows`, to use again."""
        layer, slots = strings_in(background), None
        if layer is not None:
            if self.slot_rows is None or source_states is None:
                raise DataError(
                    "LogLinearHead: expected source_states, the encoder's states (B, L, E), since the prior has "
                    "evidence and the source was given, found None; give them, and source_size when the head is made"
                )
            slots = rows_of_slots(self.slot_rows, self.output, layer.source, source_states, sentence)
        return replace(self._static_rows() if shared is None else shared, slots=slots)

    def _widened(self, rows: Rows, background: Background) -> Rows:
        """The rows with columns for all that the experts have named; the same where that is no more than before."""
        assert self.experts is not None
        if rows.exact.composed[0].size(1) == self.experts.width:
            return rows
        layer = strings_in(background)
        return widened(rows, self.experts, self.opened, None if layer is None else layer.source)
