// What a clear's answer says of each instance.

export function statesOf(clear: unknown): readonly unknown[] {
  const deployments = Array.of<{ instances?: { state?: unknown }[] }>().concat(
    Object(clear)["deployments"],
  );
  return deployments.flatMap(({ instances = [] }) => instances.map(({ state }) => state));
}
