import { wrongArgument } from '@roofline/cuda/host';
import { noGrad } from '../tensor/tape/grad-mode.ts';
import type { DynamicAxis } from '../onnx/dynamic-graph.ts';
import { gridOf, sizesOfAxis } from '../onnx/size-polynomial.ts';
import { concat } from '../ops/shape/concat.ts';
import { slice } from '../ops/shape/views.ts';
import { contiguous } from '../ops/copy/contiguous.ts';
import { scope } from '../tensor/lifetime/scope.ts';
import type { Tensor } from '../tensor/tensor.ts';

/** Names of dimensions whose length differs from run to run, by the names of inputs and their dimensions. */
export type DynamicAxes = Readonly<Record<string, Readonly<Record<number, string>>>>;

/** The axes that `dynamicAxes` names. Throws a RooflineError (code ARGUMENT). */
export function axesOf(
  dynamicAxes: DynamicAxes,
  inputNames: readonly string[],
  inputs: readonly Tensor[],
): DynamicAxis[] {
  const wrong = (wanted: string, given: unknown) => wrongArgument('exportOnnx', 'dynamicAxes', wanted, given);
  const places = Object.entries(dynamicAxes).flatMap(([inputName, named]) => {
    const input = inputNames.indexOf(inputName);
    if (input < 0) throw wrong(`by names of inputs, which are ${inputNames.join(', ')}`, inputName);
    return Object.entries(named ?? {}).map(([key, name]) => {
      const dimension = Number(key);
      const { rank } = inputs[input]!;
      if (!Number.isInteger(dimension) || dimension < 0 || dimension >= rank)
        throw wrong(`of a dimension of ${inputName}, which has ${rank}`, key);
      if (typeof name !== 'string' || name === '') throw wrong('a name for each dimension', name);
      return { name, place: { input, dimension } };
    });
  });
  const groups = [...Map.groupBy(places, ({ name }) => name)];
  return groups.map(([name, group]) => {
    const all = group.map(({ place }) => place);
    const lengths = new Set(all.map(({ input, dimension }) => inputs[input]!.shape[dimension]));
    if (lengths.size > 1)
      throw wrong(`names of equal lengths; ${name} stands for several`, [...lengths].join(', '));
    return { name, places: all };
  });
}

/**
 * The sizes to look at: a grid of a few of each axis, and one set more that confirms what follows from those. They are just
 * below those of the inputs where there is room, else above: a model has a longest context, whose own length may be a case of
 * its own, as where a table of positions is read as a whole.
 */
export function sampleSizes(axes: readonly DynamicAxis[], inputs: readonly Tensor[]): number[][] {
  const lists = axes.map(({ places: [place] }) => {
    const given = inputs[place!.input]!.shape[place!.dimension]!;
    const count = sizesOfAxis + 1;
    // A length of one is broadcast, and not like the others.
    const step = given - count > 1 ? -1 : 1;
    return Array.from({ length: count }, (_, i) => given + step * (i + 1));
  });
  const confirming = lists.map((list) => list.at(-1)!);
  return [...gridOf(lists.map((list) => list.slice(0, -1))), confirming];
}

/** The inputs in other sizes, with elements of those given; to be disposed of. */
export function inputsOfSizes(
  axes: readonly DynamicAxis[],
  sizes: readonly number[],
  inputs: readonly Tensor[],
): Tensor[] {
  return inputs.map((input, index) =>
    noGrad(() =>
      scope(() =>
        axes.reduce((x, { places }, axis) => {
          const dimensions = places
            .filter((place) => place.input === index)
            .map(({ dimension }) => dimension);
          return dimensions.reduce((y, dimension) => resized(y, dimension, sizes[axis]!), x);
        }, input),
      ),
    ),
  );
}

/** The first elements of a dimension, again from the first where there are too few. */
function resized(x: Tensor, dimension: number, length: number): Tensor {
  const times = Math.ceil(length / x.shape[dimension]!);
  const enough = concat(
    Array.from({ length: times }, () => x),
    dimension,
  );
  return contiguous(slice(enough, dimension, 0, length));
}
