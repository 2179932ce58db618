/** Times for people: kept in UTC, shown where the reader is. */

/** A stamp in the reader's time zone; as it is written where it is no time. */
export function localTime(stamp: string, language: string, timeZone?: string): string {
  const time = new Date(stamp);
  if (Number.isNaN(time.getTime())) {
    return stamp;
  }
  const zone = timeZone === undefined ? {} : { timeZone };
  const looks = { dateStyle: "medium", timeStyle: "medium", ...zone } as const;
  return new Intl.DateTimeFormat(language, looks).format(time);
}

/** The same moment in UTC, to the second. */
export function utcTime(stamp: string): string {
  return stamp.replace(/^(.{10})T(.{8}).*Z$/, "$1 $2 UTC");
}
