"""A small BERT: masked language model over an encoder."""

from __future__ import annotations

from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import initializer

from mindpulse.demo.encoder import HIDDEN_LOGIT, Encoder, EncoderConfig, initialise
from mindpulse.demo.task import Task
from mindpulse.demo.text import MaskedText, Tokenizer, corpus, unigram_entropy

VOCABULARY, LENGTH = 1000, 64
SIZE = EncoderConfig()


class Bert(nn.Cell):  # type: ignore[misc]
    """Masked language model that returns its loss, the mean over the masked words in nats.

    The matrix of the word embedding is also the output layer, as in the original.
    """

    def __init__(self, config: EncoderConfig, vocabulary: int, length: int, seed: int) -> None:
        super().__init__()
        self.hidden = config.hidden
        self.words = nn.Embedding(vocabulary, config.hidden)
        self.places = nn.Embedding(length, config.hidden)
        self.encoder = Encoder(config)
        self.head = nn.Dense(config.hidden, config.hidden)
        self.head_norm = nn.LayerNorm((config.hidden,))
        self.head_bias = Parameter(initializer("zeros", (vocabulary,)), name="head_bias")
        self.activation = nn.GELU()
        self.loss = nn.CrossEntropyLoss()
        initialise(self, seed)

    def construct(self, ids: Tensor, visible: Tensor, positions: Tensor, targets: Tensor) -> Tensor:
        """ids, visible (batch, length); positions, targets (batch, masked) -> scalar loss."""
        batch, length = ids.shape
        mask = ((1.0 - visible) * HIDDEN_LOGIT).reshape((batch, 1, 1, length))
        x = self.words(ids) + self.places.embedding_table
        x = self.encoder(x, mask)
        x = ops.gather(x, positions, 1, 1)
        x = self.head_norm(self.activation(self.head(x.reshape((-1, self.hidden)))))
        logits = ops.matmul(x, self.words.embedding_table.transpose((1, 0))) + self.head_bias
        return self.loss(logits, targets.reshape((-1,)))


def bert_task(seed: int, size: EncoderConfig = SIZE) -> Task:
    """Training of a BERT on the Python language reference."""
    text = corpus()
    tokenizer = Tokenizer.train(text, VOCABULARY)
    tokens = tokenizer.encode(text)
    net = Bert(size, VOCABULARY, LENGTH, seed)
    return Task(
        title=f"a small BERT ({size}) on the Python language reference",
        network=net,
        layers=net.encoder.layers,
        batches=MaskedText(tokens, VOCABULARY, length=LENGTH, seed=seed),
        learning_rate=1e-3,
        reference=("unigram entropy of the text", unigram_entropy(tokens)),
    )
