// A reader of datagrams at a unix socket, as systemd has one: a script of perl, which each Debian has, so that what is sent is not read by the code that sent it.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const script = `
use strict; use Socket; $| = 1;
my ($path, $reads) = @ARGV; $path =~ s/^@/\\0/;
socket(my $s, AF_UNIX, SOCK_DGRAM, 0) or die $!;
bind($s, pack_sockaddr_un($path)) or die $!;
print "bound\\n";
unless ($reads) { sleep 60; exit }
while (defined recv($s, my $text, 65536, 0)) { print unpack("H*", $text), "\\n" }
`;

export class DatagramReader implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(child: ChildProcess, lines: AsyncIterator<string>) {
    this.#child = child;
    this.#lines = lines;
  }

  /** `@` begins the name of an abstract socket. One that does not read lets datagrams wait. */
  static async at(path: string, reads = true): Promise<DatagramReader> {
    const child = spawn("perl", ["-e", script, path, reads ? "1" : ""], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    await lines.next();
    return new DatagramReader(child, lines);
  }

  async next(): Promise<string> {
    const { value } = await this.#lines.next();
    return Buffer.from(String(value), "hex").toString();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
  }
}
