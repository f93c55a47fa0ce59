// A place in the walk through request logs, as text for whoever walks: day of arrival and number in that day's file, `<YYYY-MM-DD>.<id>`.

export type LogPosition = { readonly day: string; readonly id: number };

export function formatPosition({ day, id }: LogPosition): string {
  return `${day}.${id}`;
}

export function parsePosition(text: string): LogPosition | undefined {
  const [, day, id] = /^(\d{4}-\d\d-\d\d)\.(\d{1,16})$/.exec(text) ?? [];
  return day === undefined || !Number.isSafeInteger(Number(id))
    ? undefined
    : { day, id: Number(id) };
}
