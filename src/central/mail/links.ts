// Where links in mails lead: pages of central (pages.ts).

export const pagesPrefix = "/mail";
export const recoverPath = `${pagesPrefix}/recover`;
export const unsubscribePath = `${pagesPrefix}/unsubscribe`;

/** The token stands in the query, which our access logs leave out. */
export function recoverUrl(baseUrl: string, token: string): string {
  return `${baseUrl}${recoverPath}?token=${encodeURIComponent(token)}`;
}

export function unsubscribeUrl(baseUrl: string, token: string): string {
  return `${baseUrl}${unsubscribePath}?token=${encodeURIComponent(token)}`;
}
