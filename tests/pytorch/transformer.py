"""A decoder with checkpoints and autocast to bfloat16, on texts of several lengths."""

import torch
from gpt import Decoder, next_word_loss


def main():
    """Trains six steps."""
    model = Decoder(checkpointing=True).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(6):
        tokens = torch.zeros(4, (1024, 640, 896)[step % 3], dtype=torch.long, device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            loss = next_word_loss(model(tokens), tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
