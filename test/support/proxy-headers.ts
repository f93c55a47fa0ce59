// PROXY headers as bytes, version 1 and 2, as text in latin1: what a socket is given.

const signature = "\r\n\r\n\0\r\nQUIT\n";

export function proxyV1(source: string, port = 80): string {
  const six = source.includes(":");
  const [family, destination] = six ? ["TCP6", "2001:db8::80"] : ["TCP4", "198.51.100.80"];
  return `PROXY ${family} ${source} ${destination} 50000 ${port}\r\n`;
}

/** `source` as octets, 4 or 16 of them; `extensions` as they are to stand. */
export function proxyV2(
  source: readonly number[],
  { port = 80, extensions = "" }: { readonly port?: number; readonly extensions?: string } = {},
): string {
  const destination = source.map(() => 7);
  const ports = [0xc3, 0x50, port >> 8, port & 255];
  const body = String.fromCharCode(...source, ...destination, ...ports) + extensions;
  return proxyV2Head(0x21, source.length === 4 ? 0x11 : 0x21, body);
}

/** The proxy speaks for itself. */
export const proxyV2Local = proxyV2Head(0x20, 0x00, "");

function proxyV2Head(command: number, family: number, body: string): string {
  const head = String.fromCharCode(command, family, body.length >> 8, body.length & 255);
  return `${signature}${head}${body}`;
}
