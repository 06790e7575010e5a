import { constants } from 'node:os';
import { ffi } from '../base/host/ffi.ts';
import { HostMemory } from '../base/host/host-memory.ts';

const { SIGINT, SIGTERM } = constants.signals;

// Of struct sigaction, with glibc and musl, on 64-bit processors.
const actionBytes = 152;
const handlerAt = 0;
const flagsAt = 136;
/** Handles one signal, and leaves the next one to the system. */
const SA_RESETHAND = 0x8000_0000;

type SigAction = (signal: number, action: number, former: number) => number;

let sigaction: SigAction | null = null;

/** What the process does at a signal: a struct sigaction. */
function actionOf(signal: number): HostMemory {
  const action = new HostMemory(actionBytes);
  // The process's own symbols: the name of libc's file differs.
  sigaction ??= ffi()
    .load(null)
    .func('int sigaction(int signal, uintptr_t action, uintptr_t former)') as SigAction;
  sigaction(signal, 0, action.address);
  return action;
}

const isForOneSignal = (action: HostMemory) => (action.readInt32(flagsAt) & SA_RESETHAND) !== 0;

/** Restores the action, unless another handler is there meanwhile, which knows its own flags. */
function restore(signal: number, action: HostMemory): void {
  const now = actionOf(signal);
  const isSameHandler = now.readUint64(handlerAt) === action.readUint64(handlerAt);
  if (isSameHandler && !isForOneSignal(now)) sigaction!(signal, action.address, 0);
}

/**
 * Runs `compile`, after which Ctrl-C and SIGTERM end the process as before. NVRTC's first compilation in a process (seen in
 * 12.4) handles these signals, and gives Node its handlers back without the flag that they are for one signal. They raise
 * their signal again, for the system to end the process: without the flag for ever, and only SIGKILL is left.
 */
export function keepExitSignals<T>(compile: () => T): T {
  if (process.platform !== 'linux') return compile();
  const actions = [SIGINT, SIGTERM].map((signal) => [signal, actionOf(signal)] as const);
  try {
    return compile();
  } finally {
    for (const [signal, action] of actions) if (isForOneSignal(action)) restore(signal, action);
  }
}
