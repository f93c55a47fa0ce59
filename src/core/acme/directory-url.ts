// Which directory of ACME a devlove may name.

/** Let's Encrypt. */
export const directoryDefault = "https://acme-v02.api.letsencrypt.org/directory";

/**
 * Says what is wrong with the URL of a directory as it is written, or returns undefined. Central judges where it leads
 * at each connection.
 */
export function directoryUrlFault(text: string): string | undefined {
  if (!/^https:\/\//i.test(text))
    return "must be a URL with https://: orders and certificates travel by it";
  if (/[^\x21-\x7e]|\\/.test(text))
    return "must not contain blanks, backslashes or characters beyond ASCII";
  if (!URL.canParse(text)) return "is not a URL: the host or the port cannot be read";
  const { username, password, port, hash } = new URL(text);
  if (username !== "" || password !== "") return "must not contain credentials";
  if (port === "0") return "must not have port 0";
  return hash === "" ? undefined : "must not have a fragment";
}
