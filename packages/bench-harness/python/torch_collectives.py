"""One rank of torch.distributed, which takes turns with Roofline's; see src/benchmarks/allreduce/ranks/turns.ts."""

import time

import torch
import torch.distributed as dist

from peer_protocol import serve

ROOT = 0


class Server:
    def __call__(self, request):
        return getattr(self, request["command"])(request)

    def join(self, request):
        self.rank, self.ranks = request["rank"], request["ranks"]
        self.on_gpu = request["backend"] == "nccl"
        self.device = torch.device("cuda", self.rank) if self.on_gpu else torch.device("cpu")
        if self.on_gpu:
            torch.cuda.set_device(self.device)
        address = f"tcp://127.0.0.1:{request['port']}"
        dist.init_process_group(
            request["backend"], init_method=address, rank=self.rank, world_size=self.ranks
        )
        return {}

    def prepare(self, request):
        self.op, count = request["op"], request["count"]
        dtype = getattr(torch, request["dtype"])
        pieces = lambda ops: self.ranks if self.op in ops else 1
        self.input = torch.ones(
            count * pieces(("reducescatter", "alltoall", "scatter")), dtype=dtype, device=self.device
        )
        self.output = torch.zeros(
            count * pieces(("allgather", "alltoall", "gather")), dtype=dtype, device=self.device
        )
        return {}

    def sample(self, request):
        call = getattr(self, self.op)
        for _ in range(request["warmup"]):
            call()
        self.synchronize()
        dist.barrier()
        count = request["iterations"]
        if self.on_gpu:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(count):
                call()
            end.record()
            self.synchronize()
            return {"samplesMs": [start.elapsed_time(end) / count]}
        return {"samplesMs": [timed(call) for _ in range(count)]}

    def synchronize(self):
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def allreduce(self):
        dist.all_reduce(self.input)

    def reduce(self):
        dist.reduce(self.input, ROOT)

    def broadcast(self):
        dist.broadcast(self.input, ROOT)

    def allgather(self):
        if self.on_gpu:
            dist.all_gather_into_tensor(self.output, self.input)
        else:
            dist.all_gather(list(self.output.chunk(self.ranks)), self.input)

    def reducescatter(self):
        if self.on_gpu:
            dist.reduce_scatter_tensor(self.output, self.input)
        else:
            dist.reduce_scatter(self.output, list(self.input.chunk(self.ranks)))

    def alltoall(self):
        dist.all_to_all_single(self.output, self.input)

    def gather(self):
        dist.gather(self.input, list(self.output.chunk(self.ranks)) if self.rank == ROOT else None, ROOT)

    def scatter(self):
        dist.scatter(self.output, list(self.input.chunk(self.ranks)) if self.rank == ROOT else None, ROOT)

    def sendrecv(self):
        right, left = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
        ops = [dist.P2POp(dist.isend, self.input, right), dist.P2POp(dist.irecv, self.output, left)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()


def timed(call):
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    serve(Server())
