// Squid as a reverse proxy: exact URLs only.

import { command, findVersion, PeerGround, purging, type Peer } from "./peer.ts";

export const squid: Peer = {
  name: "Squid",
  find: () => findVersion(["squid", "-v"], /Version ([\d.]+)/),
  async start(originPort) {
    const ground = await PeerGround.open(originPort);
    try {
      await ground.run(["squid", "-N", "-f", ground.write("squid.conf", "squid.conf")]);
    } catch (error) {
      await ground[Symbol.asyncDispose]();
      throw error;
    }
    return {
      url: ground.url,
      ways: [
        {
          name: "Squid PURGE",
          ...purging((target) => command(`${ground.url}${target}`, "PURGE")),
          all: { cannot: "no command: a PURGE is of one URL" },
        },
      ],
      [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
    };
  },
};
