"""Batches are prepared on a stream of their own; the compute stream uses them (record_stream)."""

import torch
from torch import nn


def main():
    """Trains eight steps."""
    model = nn.Sequential(nn.Linear(2048, 8192), nn.GELU(), nn.Linear(8192, 2048)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.cuda.Stream()
    compute = torch.cuda.current_stream()
    for step in range(8):
        with torch.cuda.stream(loader):
            rows = 768 + 128 * (step % 4)
            host = torch.zeros(rows, 2048, pin_memory=True)
            batch = host.to("cuda", non_blocking=True)
            scaled = batch * 2
        compute.wait_stream(loader)
        batch.record_stream(compute)
        scaled.record_stream(compute)
        model(scaled).add(batch).square().mean().backward()
        del batch, scaled
        optimizer.step()
        optimizer.zero_grad()
