"""A decoder of the kind of GPT, in parts that other programs use."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    """Attention and a feed-forward net, each beside a shortcut."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.projections = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width),
                                          nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, inputs):
        """Returns the activations."""
        batch, length, width = inputs.shape
        parts = self.projections(self.before_attention(inputs)).chunk(3, dim=-1)
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                             for part in parts)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        inputs = inputs + self.output(mixed.transpose(1, 2).reshape(batch, length, width))
        return inputs + self.feed_forward(inputs)


class Decoder(nn.Module):
    """Embeddings, layers, logits."""

    def __init__(self, layers=6, width=768, words=32000, length=1024, checkpointing=False):
        super().__init__()
        self.checkpointing = checkpointing
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(length, width)
        self.layers = nn.ModuleList(Layer(width, width // 64) for _ in range(layers))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, words, bias=False))

    def forward(self, tokens):
        """Returns the logits."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.words(tokens) + self.positions(places)
        for layer in self.layers:
            if self.checkpointing:
                hidden = checkpoint(layer, hidden, use_reentrant=False)
            else:
                hidden = layer(hidden)
        return self.head(hidden)


def next_word_loss(logits, tokens):
    """The loss of a decoder."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
