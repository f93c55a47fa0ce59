// Which addresses a backend may have. Pure: a name is judged as a name, and whoever connects judges what it
// resolves to.
//
// The URL is read as the connecting side reads it (WHATWG), so that `http://0xA9FEA9FE/` is seen as 169.254.169.254.

import ipaddr from "ipaddr.js";

export type BackendRules = {
  /** Accepts names such as `localhost.example.net` and `host.docker.internal`: some other machine's loopback. */
  readonly otherLoopbackNamesAllowed?: boolean;
  /** A reason against this URL, for example that it is a listener of the agent itself. Runs last. */
  readonly backendGuard?: (url: URL) => string | undefined;
};

const urlCharsMax = 2048;

/** Metadata services whose address is outside the link-local ranges. */
const metadataAddresses: ReadonlySet<string> = new Set([
  "100.100.100.200", // Alibaba
  "168.63.129.16", // Azure
  "192.0.0.192", // Oracle
  "fd00:42::42", // Scaleway
  "fd20:ce::254", // Google
]);

/**
 * AWS keeps instance metadata at `::254` and credentials of EKS pods at `::23` in this prefix, and may add
 * more.
 */
const metadataPrefix = ipaddr.IPv6.parse("fd00:ec2::");
const metadataPrefixBits = 32;

const metadataNames: ReadonlySet<string> = new Set([
  "metadata",
  "metadata.google.internal",
  "metadata.goog",
  "metadata.azure.internal",
  "metadata.tencentyun.com",
  "metadata.platformequinix.com",
  "instance-data",
  "instance-data.ec2.internal",
]);

const otherLoopbackNames: ReadonlySet<string> = new Set([
  "host.docker.internal",
  "gateway.docker.internal",
  "host.containers.internal",
  "host.lima.internal",
]);

/** Says what is wrong with a backend's URL, or returns undefined. */
export function backendUrlFault(text: string, rules: BackendRules): string | undefined {
  if (text.length > urlCharsMax) return `is longer than ${urlCharsMax} characters`;
  if (!/^https?:\/\//i.test(text)) return "must start with `http://` or `https://`";
  if (/[^\x21-\x7e]|\\/.test(text))
    return "must not contain blanks, backslashes or characters beyond ASCII";
  if (!URL.canParse(text)) return "is not a URL: the host or the port cannot be read";
  const url = new URL(text);
  if (url.username !== "" || url.password !== "" || text.includes("@"))
    return "must not contain credentials";
  if (text.includes("#")) return "must not contain a fragment";
  if (text.includes("?")) return "must not contain a query: the visitor's is sent";
  if (url.pathname !== "/") return "must not contain a path: the visitor's is sent";
  if (url.port === "0") return "must not have port 0";
  return hostFault(url.hostname, rules) ?? rules.backendGuard?.(url);
}

function hostFault(hostname: string, rules: BackendRules): string | undefined {
  const name = hostname.replace(/\.$/, "");
  const literal = name.startsWith("[") ? name.slice(1, -1) : name;
  if (ipaddr.isValid(literal)) return reachedAddressFault(literal);
  if (metadataNames.has(name)) return `points at a cloud metadata service (${name})`;
  if (
    rules.otherLoopbackNamesAllowed !== true &&
    (otherLoopbackNames.has(name) || name.startsWith("localhost."))
  ) {
    return `points at another host's loopback name (${name}): use localhost or 127.0.0.1 for the accelerator host`;
  }
  return undefined;
}

/**
 * Says what is wrong with connecting to an address, whatever name led to it. Returns undefined for a text
 * that is no address.
 */
export function reachedAddressFault(address: string): string | undefined {
  return ipaddr.isValid(address) ? addressFault(reached(ipaddr.parse(address))) : undefined;
}

/**
 * Returns an address in its one spelling, out of any wrapping, or undefined for a text that is no address.
 */
export function plainAddress(text: string): string | undefined {
  if (!ipaddr.isValid(text)) return undefined;
  return textOf(reached(ipaddr.parse(text)));
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

function textOf(address: Address): string {
  return address instanceof ipaddr.IPv4 ? address.toString() : address.toRFC5952String();
}

/**
 * Returns the IPv4 address that an IPv6 address wraps: mapped, translated (RFC 2765 §2.1), compatible, NAT64
 * (RFC 6052), 6to4 (RFC 3056); otherwise the address itself.
 */
function reached(address: Address): Address {
  if (address instanceof ipaddr.IPv4) return address;
  const bytes = address.toByteArray();
  const startsWith = (...prefix: number[]): boolean =>
    prefix.every((byte, at) => bytes[at] === byte);
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  if (startsWith(0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0)) return new ipaddr.IPv4(bytes.slice(12));
  if (startsWith(0x20, 0x02)) return new ipaddr.IPv4(bytes.slice(2, 6));
  if (startsWith(0, 0x64, 0xff, 0x9b)) return new ipaddr.IPv4(bytes.slice(12));
  const isCompatible =
    bytes.slice(0, 12).every((byte) => byte === 0) &&
    bytes.slice(12, 14).some((byte) => byte !== 0);
  return isCompatible ? new ipaddr.IPv4(bytes.slice(12)) : address;
}

function addressFault(address: Address): string | undefined {
  const text = textOf(address);
  const isMetadata =
    metadataAddresses.has(text) ||
    (address instanceof ipaddr.IPv6 && address.match(metadataPrefix, metadataPrefixBits));
  if (isMetadata) return `points at a cloud metadata address (${text})`;
  const range = address.range();
  if (range === "linkLocal")
    return `points at a link-local address (${text}), where cloud metadata services are`;
  if (range === "unspecified")
    return `points at ${text}, which names no host: use 127.0.0.1 for the accelerator host`;
  if (range === "multicast" || range === "broadcast")
    return `points at a ${range} address (${text})`;
  return undefined;
}

/** Says what is wrong with `backend.host`, or returns undefined. `preserve` sends the visitor's host. */
export function backendHostFault(text: string): string | undefined {
  if (text === "preserve") return undefined;
  const fault = 'must be "preserve", or a host name or address with an optional port';
  if (text.length > 259 || !/^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/i.test(text))
    return fault;
  return URL.canParse(`http://${text}/`) ? undefined : fault;
}
