import { MessageChannel, type MessagePort, Worker, receiveMessageOnPort } from 'node:worker_threads';
import { packageProgram, threadFlags } from '../../package-program.ts';
import type { CheckMessage, FailureMessage, WatchMessage, WatchOrder } from './messages.ts';

let worker: Worker | null = null;

/** One thread for all communicators. It does not keep the process alive. */
function watchdogThread(): Worker {
  if (worker) return worker;
  worker = new Worker(packageProgram('nccl-watchdog'), {
    name: 'roofline-nccl-watchdog',
    execArgv: threadFlags(),
  });
  worker.unref();
  worker.on('error', (error) => {
    worker = null;
    throw error;
  });
  return worker;
}

/** A communicator's watchdog, seen from the thread that calls it. */
export class Watchdog {
  readonly #port: MessagePort;

  constructor(order: WatchOrder) {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.unref();
    watchdogThread().postMessage({ order, port: port2 } satisfies WatchMessage, [port2]);
  }

  /** Has a call compared with those of the other ranks. */
  check(message: CheckMessage): void {
    this.#port.postMessage(message, []);
  }

  /** Why it ended the communicator; null where it did not. */
  failure(): FailureMessage | null {
    return (receiveMessageOnPort(this.#port)?.message as FailureMessage | undefined) ?? null;
  }

  close(): void {
    this.#port.close();
  }
}
