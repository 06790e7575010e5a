/** Memory that a device handed out. What is inside is the device's own business. */
export interface DeviceBuffer {
  /** The bytes that were asked for; the block that holds them may be larger. */
  readonly byteLength: number;
  /** Where it starts in the device's memory. */
  readonly address: number;
}

/** A point on a device's timeline. */
export interface DeviceEvent {
  /** Milliseconds from `earlier` to this event, both recorded on the same device; waits for this one. */
  elapsedMs(earlier: DeviceEvent): number;
}

/** Bytes. `allocated` are held by live storages, `reserved` also by the allocator's cache. */
export interface MemoryStatistics {
  allocatedBytes: number;
  reservedBytes: number;
  peakAllocatedBytes: number;
  peakReservedBytes: number;
  /** Storages that are alive now. */
  liveStorages: number;
  /** The device's memory, and what of it no process holds. */
  totalBytes: number;
  freeBytes: number;
}
