"""A decoder under FSDP2, as rank 0 of 8. Its peers are not there; NCCL's stand-in needs none."""

import torch
from gpt import Decoder, next_word_loss
from torch import distributed
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def main():
    """Trains four steps."""
    distributed.init_process_group("nccl", store=distributed.HashStore(), rank=0, world_size=8)
    model = Decoder(layers=8, width=1024, checkpointing=True).cuda()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
    for layer in model.layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(4):
        tokens = torch.zeros(2, (1024, 768)[step % 2], dtype=torch.long, device="cuda")
        next_word_loss(model(tokens), tokens).backward()
        optimizer.step()
        optimizer.zero_grad()
    distributed.destroy_process_group()
