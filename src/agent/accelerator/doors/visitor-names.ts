// How a visitor is named whom nothing is known of but his address: by an IPv4 address, or by the /64 of an IPv6 address, for whoever has one address of it mostly
// has all of them.

import { AddressReader } from "../../../core/addresses/address-reader.ts";

export class VisitorNames {
  readonly #reader = new AddressReader();

  of(address: string): string {
    if (!address.includes(":") || this.#reader.read(address) !== 6) return address;
    const [first = 0, second = 0] = this.#reader.words;
    return `${first.toString(16)}:${second.toString(16)}`;
  }
}
