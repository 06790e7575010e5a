/** A point on a queue that another can wait for. */
export interface QueueEvent {
  dispose(): void;
}

/** Work that uses memory in order; a `CudaStream` is one. */
export interface MemoryQueue {
  recordEvent(options: { readonly timing: false }): QueueEvent;
  waitFor(event: QueueEvent): void;
}
