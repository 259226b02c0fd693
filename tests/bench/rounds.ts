/**
 * Measures several things in turn, round by round.
 *
 * A machine that is busy for a while disturbs all of a round alike, so what one round says of two
 * of them is worth more than what their medians say. Who begins changes from round to round.
 *
 * @module
 */

/** The rounds of each subject, in order. */
export async function inTurn<Name extends string, Found>(
  rounds: number,
  subjects: Readonly<Record<Name, () => Promise<Found>>>,
): Promise<Record<Name, Found[]>> {
  const names = Object.keys(subjects) as Name[];
  const found = Object.fromEntries(names.map((name): [Name, Found[]] => [name, []])) as Record<
    Name,
    Found[]
  >;
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(round + turn) % names.length]!;
      found[name].push(await subjects[name]());
    }
  }
  return found;
}
