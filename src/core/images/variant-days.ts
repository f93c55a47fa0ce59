// On which UTC days the variants of images count that an agent tells of.
//
// An agent tells sums since it began to count, and what of them fell on its UTC day; so a report that comes twice adds nothing, and what one that was
// lost said is in the next. A mark is where its sums stood, and on which day. What a report adds belongs to the day that it names, and the rest to the day of the mark.

export type VariantCount = { readonly made: number; readonly blocked: number };

export type ToldVariants = VariantCount & {
  /** Undefined: the agent does not say when it began, or what fell on which day. */
  readonly today?: VariantCount & {
    /** When it began to count, ISO 8601 in UTC. */
    readonly since: string;
    /** `YYYY-MM-DD`, by the agent's clock. */
    readonly day: string;
  };
};

export type VariantMark = VariantCount & {
  /** Empty: not told. */
  readonly since: string;
  readonly day: string;
  readonly ofDay: VariantCount;
};

export type VariantDay = VariantCount & { readonly day: string };

/** The days (UTC, `YYYY-MM-DD`) around the arrival of a report. */
export type ReportDays = {
  readonly today: string;
  readonly yesterday: string;
  readonly tomorrow: string;
  /** The first day of which something is kept. */
  readonly oldest: string;
};

/** Days of variants are kept so long. */
export const variantDaysKept = 90;

const none: VariantCount = { made: 0, blocked: 0 };

/**
 * Returns what a report adds to which days, and the mark behind it. Undefined: it tells nothing new.
 */
export function addedVariants(
  mark: VariantMark | undefined,
  told: ToldVariants,
  { today: arrival, yesterday, tomorrow, oldest }: ReportDays,
): { readonly mark: VariantMark; readonly added: readonly VariantDay[] } | undefined {
  const { today } = told;
  const isSameStart = mark !== undefined && goesOn(mark, told);
  const base = isSameStart ? mark : none;
  const added = above(told, base);
  const day = today?.day ?? arrival;
  const isNew = added.made > 0 || added.blocked > 0;
  if (!isNew && isSameStart && mark.day === day) return undefined;
  const sameDay = isSameStart && mark.day === day ? mark.ofDay : none;
  const ofDay = today === undefined ? added : least(added, above(today, sameDay));
  const next = {
    since: today?.since ?? (isSameStart ? mark.since : ""),
    made: base.made + added.made,
    blocked: base.blocked + added.blocked,
    day,
    ofDay: { made: sameDay.made + ofDay.made, blocked: sameDay.blocked + ofDay.blocked },
  };
  // Clocks differ by moments around midnight; one that is further off is wrong.
  const isClockRight = yesterday <= day && day <= tomorrow;
  const before = (isSameStart ? mark.day : today?.since.slice(0, 10)) ?? day;
  const isBeforeKept = isClockRight && oldest <= before && before < day;
  const days = [
    { day: isClockRight ? day : arrival, ...ofDay },
    { day: isBeforeKept ? before : arrival, ...above(added, ofDay) },
  ];
  return { mark: next, added: days.filter(({ made, blocked }) => made > 0 || blocked > 0) };
}

/** Returns whether the sums are of the agent's start that the mark is of. Where that is not told, sums that fell began anew. */
function goesOn(mark: VariantMark, { made, blocked, today }: ToldVariants): boolean {
  if (today !== undefined && mark.since !== "") return today.since === mark.since;
  return made >= mark.made && blocked >= mark.blocked;
}

/** By how much each number is above the other one. */
function above(one: VariantCount, other: VariantCount): VariantCount {
  return {
    made: Math.max(0, one.made - other.made),
    blocked: Math.max(0, one.blocked - other.blocked),
  };
}

function least(one: VariantCount, other: VariantCount): VariantCount {
  return { made: Math.min(one.made, other.made), blocked: Math.min(one.blocked, other.blocked) };
}
