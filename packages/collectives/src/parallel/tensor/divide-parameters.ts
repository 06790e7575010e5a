import { type Tensor, copy, keep, noGrad, scope, slice } from '@roofline/tensor-core';
import type { ProcessGroup } from '../../group/process-group.ts';
import { broadcastAll } from '../broadcast-all.ts';
import { checkAgreement } from '../check-agreement.ts';
import { replaceParameters } from '../sharded/parameter-unit.ts';
import { type DividableModel, owner } from './dividable-model.ts';

/** How a parameter is divided. */
export interface DivisionPlan {
  /** Along which it is divided; null where each rank has it whole. */
  readonly dimension: 0 | 1 | null;
  /** So many neighbouring ranks have each part alike. */
  readonly copies: number;
}

/** What a rank has of a parameter. */
export interface Division extends DivisionPlan {
  /** Of the whole parameter. */
  readonly shape: readonly number[];
  /** The elements that this rank has along that dimension, of so many there. */
  readonly from: number;
  readonly to: number;
}

/** Puts this rank's part in the place of each parameter of a model, one after the other; all begin with the first rank's. By name. */
export function divideParameters(
  model: DividableModel,
  plan: ReadonlyMap<Tensor, DivisionPlan>,
  group: ProcessGroup,
): Map<string, Division> {
  const named = [...model.namedParameters()];
  checkAgreement(owner, group, named, {});
  const divisions = new Map<string, Division>();
  for (const [name, whole] of named) {
    const { shape, requiresGrad } = whole;
    broadcastAll(group, [whole], () => 0);
    const { dimension, copies } = plan.get(whole) ?? { dimension: null, copies: group.size };
    if (dimension === null) {
      divisions.set(name, { shape, dimension, copies, from: 0, to: 0 });
      continue;
    }
    const length = (shape[dimension]! * copies) / group.size;
    const place = Math.floor(group.rank / copies);
    const [from, to] = [place * length, (place + 1) * length];
    const part = noGrad(() => scope(() => keep(copy(slice(whole, dimension, from, to)))));
    replaceParameters(model, new Map([[whole, part.requiresGrad_(requiresGrad)]]));
    whole.dispose();
    divisions.set(name, { shape, dimension, copies, from, to });
  }
  return divisions;
}
