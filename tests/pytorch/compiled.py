"""A decoder under torch.compile."""

import torch
from gpt import Decoder, next_word_loss


def main():
    """Trains three steps."""
    model = Decoder(layers=2, width=512, words=8000, length=512).cuda()
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.zeros(8, 512, dtype=torch.long, device="cuda")
    for _ in range(3):
        next_word_loss(compiled(tokens), tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
