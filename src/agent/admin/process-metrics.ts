// Metrics of the agent's own process: its release and start, what it uses, how far its main loop lags.

import { monitorEventLoopDelay } from "node:perf_hooks";
import { createMetrics, type Registry } from "../../base/metrics.ts";
import type { Health } from "../../base/health.ts";

export const processMetrics = {
  accel_agent_build_info: {
    kind: "gauge",
    help: "Always 1; the release is the label.",
    labels: ["version"],
  },
  accel_agent_process_start_time_seconds: {
    kind: "gauge",
    help: "When this process started, in seconds since the epoch.",
  },
  accel_agent_process_resident_memory_bytes: {
    kind: "gauge",
    help: "Resident memory of the process, all threads.",
  },
  accel_agent_process_cpu_seconds: {
    kind: "gauge",
    help: "CPU time used since the start, all threads.",
  },
  accel_agent_thread_loop_delay_seconds: {
    kind: "gauge",
    help: "99th percentile of the main thread's event loop delay since the last scrape.",
  },
  accel_agent_health_warnings: {
    kind: "gauge",
    help: "Health warnings in force, by severity.",
    labels: ["severity"],
  },
} as const;

/** Starts the metrics. Call `refresh` before each scrape. */
export function startProcessMetrics(
  registry: Registry,
  health: Health,
  version: string,
  startedAtMs: number,
): { refresh(): void } & Disposable {
  const metrics = createMetrics(processMetrics, registry);
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  metrics.accel_agent_build_info.set({ version }, 1);
  metrics.accel_agent_process_start_time_seconds.set(startedAtMs / 1_000);
  return {
    refresh() {
      metrics.accel_agent_process_resident_memory_bytes.set(process.memoryUsage.rss());
      const { user, system } = process.cpuUsage();
      metrics.accel_agent_process_cpu_seconds.set((user + system) / 1e6);
      metrics.accel_agent_thread_loop_delay_seconds.set(
        delay.count === 0 ? 0 : delay.percentile(99) / 1e9,
      );
      delay.reset();
      for (const severity of ["info", "warning", "error"] as const) {
        const count = health.list().filter((warning) => warning.severity === severity).length;
        metrics.accel_agent_health_warnings.set({ severity }, count);
      }
    },
    [Symbol.dispose]: () => void delay.disable(),
  };
}
