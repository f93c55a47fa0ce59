// HAProxy with its cache, which has no way of clearing.

import { findVersion, PeerGround, type Peer } from "./peer.ts";

export const haproxy: Peer = {
  name: "HAProxy",
  find: () => findVersion(["haproxy", "-v"], /version ([\d.]+)/),
  async start(originPort) {
    const ground = await PeerGround.open(originPort);
    try {
      await ground.run(["haproxy", "-db", "-f", ground.write("haproxy.cfg", "haproxy.cfg")]);
    } catch (error) {
      await ground[Symbol.asyncDispose]();
      throw error;
    }
    const cannot = { cannot: "no command clears its cache" };
    return {
      url: ground.url,
      ways: [{ name: "HAProxy", one: cannot, under: cannot, all: cannot }],
      [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
    };
  },
};
