"""Training of a model of the size of Llama 8B in bfloat16: AdamW, checkpoints, 4 texts of 4096 words."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, HEADS, GROUPS, INNER, LAYERS, WORDS = 4096, 32, 8, 14336, 32, 128256
HEAD = WIDTH // HEADS


def _linear(before, after):
    return nn.Linear(before, after, bias=False)


class Layer(nn.Module):
    """Attention with shared keys, and a gated feed-forward net."""

    def __init__(self):
        super().__init__()
        self.before_attention, self.before_feed = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.query, self.output = _linear(WIDTH, WIDTH), _linear(WIDTH, WIDTH)
        self.key, self.value = _linear(WIDTH, GROUPS * HEAD), _linear(WIDTH, GROUPS * HEAD)
        self.gate, self.up, self.down = (_linear(WIDTH, INNER), _linear(WIDTH, INNER),
                                         _linear(INNER, WIDTH))

    def forward(self, inputs):
        """Returns the activations."""
        normed = self.before_attention(inputs)
        query, key, value = (
            projection(normed).unflatten(-1, (-1, HEAD)).transpose(1, 2)
            for projection in (self.query, self.key, self.value))
        key, value = (part.repeat_interleave(HEADS // GROUPS, dim=1) for part in (key, value))
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        inputs = inputs + self.output(mixed.transpose(1, 2).flatten(2))
        normed = self.before_feed(inputs)
        return inputs + self.down(nn.functional.silu(self.gate(normed)) * self.up(normed))


class Model(nn.Module):
    """Embeddings, layers, logits."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(WIDTH), _linear(WIDTH, WORDS)

    def forward(self, tokens):
        """Returns the logits."""
        hidden = self.words(tokens)
        for layer in self.layers:
            hidden = checkpoint(layer, hidden, use_reentrant=False)
        return self.head(self.norm(hidden))


def next_word_loss(logits, tokens):
    """The loss in fp32 of each word after the first."""
    logits = logits[:, :-1].contiguous().float()
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def main():
    """Trains three steps."""
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.zeros(4, 4096, dtype=torch.long, device="cuda")
    for _ in range(3):
        next_word_loss(model(tokens), tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
