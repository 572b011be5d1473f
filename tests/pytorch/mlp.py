"""A multilayer perceptron, trained in fp32 with AdamW on batches of several sizes."""

import torch
from torch import nn


def main():
    """Trains six steps."""
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
                          nn.Linear(4096, 1000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(6):
        rows = 512 + 96 * (step % 3)
        inputs = torch.randn(rows, 1024, device="cuda")
        targets = torch.zeros(rows, dtype=torch.long, device="cuda")
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        optimizer.zero_grad()
