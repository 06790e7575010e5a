import {
  type ProcessGroup,
  StoreClient,
  type StoreClientOptions,
  initProcessGroup,
} from '@roofline/collectives';
import { type Device, device as openDevice } from '@roofline/tensor-core';
import type { CollectiveBackend } from '../parameters.ts';
import { type TurnReply, type TurnRequest, turnRequest } from './turns.ts';
import { Workload } from './workload.ts';

/** Between turns a rank waits for as long as the other side measures. */
const patienceMs = 2 ** 30;
/** A call of a gigabyte may take a while on a busy machine. */
const callTimeoutMs = 300_000;

/** Answers the turns of a store, on one rank of a group that it joins, until it is asked to end. */
export async function serveTurns(backend: CollectiveBackend, place: StoreClientOptions): Promise<void> {
  const store = await StoreClient.connect(place);
  const group = await initProcessGroup({ backend, timeoutMs: callTimeoutMs });
  const server = new TurnServer(group, group.device ?? openDevice('cpu'));
  for (let turn = 0; ; turn++) {
    const text = await store.get(`turn/${turn}`, { timeoutMs: patienceMs });
    const request = turnRequest.parse(JSON.parse(new TextDecoder().decode(text)));
    if (request.command === 'end') break;
    await store.set(`reply/${turn}/${group.rank}`, JSON.stringify(answerTo(server, request)));
  }
  group.dispose();
  store.close();
}

function answerTo(server: TurnServer, request: TurnRequest): TurnReply {
  try {
    return server.answer(request);
  } catch (error) {
    const { name, message, code } = error as Error & { code?: string };
    return { error: { name, message, ...(code === undefined ? {} : { code }) } };
  }
}

class TurnServer {
  readonly #group: ProcessGroup;
  readonly #device: Device;
  #workload: Workload | null = null;

  constructor(group: ProcessGroup, device: Device) {
    this.#group = group;
    this.#device = device;
  }

  answer(request: TurnRequest): TurnReply {
    if (request.command === 'prepare') {
      this.#workload?.dispose();
      const { op, count, dtype } = request;
      this.#workload = new Workload(this.#group, this.#device, op, count, dtype);
      return {};
    }
    if (request.command === 'check') return { wrong: this.#workload!.countWrong(request.placement) };
    if (request.command === 'sample') return { samplesMs: this.#sample(request) };
    return {};
  }

  #sample({ placement, warmup, iterations }: Extract<TurnRequest, { command: 'sample' }>): number[] {
    const call = () => this.#workload!.run(placement);
    for (let i = 0; i < warmup; i++) call();
    this.#device.synchronize();
    this.#group.barrier().wait();
    return this.#device.type === 'cuda'
      ? [this.#sampleQueued(call, iterations)]
      : sampleEach(call, iterations);
  }

  /** On a GPU the calls of a turn queue up one after the other, as in nccl-tests: the mean is one sample. */
  #sampleQueued(call: () => void, iterations: number): number {
    const start = this.#device.recordEvent();
    for (let i = 0; i < iterations; i++) call();
    const end = this.#device.recordEvent();
    return end.elapsedMs(start) / iterations;
  }
}

function sampleEach(call: () => void, iterations: number): number[] {
  return Array.from({ length: iterations }, () => {
    const startMs = performance.now();
    call();
    return performance.now() - startMs;
  });
}
