"""A residual convolution net on images of several sizes, trained with momentum."""

import torch
from torch import nn


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after))
        self.shortcut = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, inputs):
        """Returns the activations."""
        return torch.relu(self.body(inputs) + self.shortcut(inputs))


def main():
    """Trains six steps."""
    widths = (64, 64, 128, 256, 512)
    blocks = [Block(before, after, 2) for before, after in zip(widths, widths[1:])]
    model = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.MaxPool2d(2), *blocks,
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(6):
        side = (224, 192, 256)[step % 3]
        images = torch.randn(32, 3, side, side, device="cuda")
        targets = torch.zeros(32, dtype=torch.long, device="cuda")
        nn.functional.cross_entropy(model(images), targets).backward()
        optimizer.step()
        optimizer.zero_grad()
