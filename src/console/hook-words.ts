// The address of a chat's hook without what makes it a secret: whoever knows all of it can post there. Pure.

export function hookWords(url: string): string {
  try {
    const { protocol, host } = new URL(url);
    return `${protocol}//${host}/…`;
  } catch {
    return "…";
  }
}
