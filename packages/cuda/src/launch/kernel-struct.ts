import { checkObject, checkText, wrongArgument } from '../base/check-value.ts';

/** Bytes and alignment of a member in CUDA C++, and by which view of HostMemory it is written. */
const memberTypes = {
  pointer: { bytes: 8, alignment: 8, view: 'int64' },
  int64: { bytes: 8, alignment: 8, view: 'int64' },
  'int64[3]': { bytes: 24, alignment: 8, view: 'int64' },
  int32: { bytes: 4, alignment: 4, view: 'words' },
  float32: { bytes: 4, alignment: 4, view: 'floats' },
  float64: { bytes: 8, alignment: 8, view: 'doubles' },
  tensorMap: { bytes: 128, alignment: 64, view: 'tensorMaps' },
} as const;

/** A member's type; a `tensorMap` is a CUtensorMap. */
export type MemberType = keyof typeof memberTypes;

/** A structure's members by name, in their order. */
export type StructMembers = Readonly<Record<string, MemberType>>;

type View = (typeof memberTypes)[MemberType]['view'];

/** The places of the members that are written by one view. */
type Places<M extends StructMembers, V extends View> = {
  readonly [Name in keyof M as (typeof memberTypes)[M[Name]]['view'] extends V ? Name : never]: number;
};

const elementBytes: Record<View, number> = { int64: 1, tensorMaps: 1, words: 4, floats: 4, doubles: 8 };

/**
 * A structure that a kernel takes by value, laid out as CUDA C++ does. A member is written to a HostMemory by the view that its
 * type asks for: `memory.words[struct.words.rows] = rows`, `memory.writeInt64(struct.int64.source, address)`. Tests hold each
 * structure to the header that declares it.
 */
export class KernelStruct<M extends StructMembers> {
  /** The structure's name in the header. */
  readonly name: string;
  readonly byteLength: number;
  /** Bytes from its start to each member. */
  readonly offsets: Readonly<Record<keyof M, number>>;
  /** Pointers and 64-bit integers: offsets for `writeInt64`. */
  readonly int64: Places<M, 'int64'>;
  /** 32-bit integers: indices of `words`. */
  readonly words: Places<M, 'words'>;
  /** Indices of `floats`. */
  readonly floats: Places<M, 'floats'>;
  /** Indices of `doubles`. */
  readonly doubles: Places<M, 'doubles'>;
  /** Offsets for `CudaDevice.encodeTensorMap`. */
  readonly tensorMaps: Places<M, 'tensorMaps'>;

  /** Throws a RooflineError (code ARGUMENT) for a member of another type. */
  constructor(name: string, members: M) {
    checkText('KernelStruct', 'the name', name);
    checkObject('KernelStruct', 'the members', members);
    this.name = name;
    const offsets: Record<string, number> = {};
    const views: Record<View, Record<string, number>> = {
      ...{ int64: {}, words: {}, floats: {}, doubles: {}, tensorMaps: {} },
    };
    let [end, widest] = [0, 1];
    for (const [member, type] of Object.entries(members)) {
      if (!Object.hasOwn(memberTypes, type)) {
        const known = `one of ${Object.keys(memberTypes).join(', ')}`;
        throw wrongArgument('KernelStruct', `the type of ${member}`, known, type);
      }
      const { bytes, alignment, view } = memberTypes[type];
      const offset = Math.ceil(end / alignment) * alignment;
      offsets[member] = offset;
      views[view][member] = offset / elementBytes[view];
      end = offset + bytes;
      widest = Math.max(widest, alignment);
    }
    this.byteLength = Math.ceil(end / widest) * widest;
    this.offsets = offsets as typeof this.offsets;
    this.int64 = views.int64 as typeof this.int64;
    this.words = views.words as typeof this.words;
    this.floats = views.floats as typeof this.floats;
    this.doubles = views.doubles as typeof this.doubles;
    this.tensorMaps = views.tensorMaps as typeof this.tensorMaps;
  }
}
