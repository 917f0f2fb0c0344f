// studio/src/worklets/capture-worklet.ts
var e = class extends AudioWorkletProcessor {
	#e;
	#t = 0;
	#n = !1;
	constructor(e) {
		super(), this.#e = new Float32Array(e.processorOptions.chunkSamples), this.port.onmessage = () => this.#i();
	}
	process([e = []]) {
		let t = this.#n ? 0 : e[0]?.length ?? 0;
		for (let n = 0; n < t; n += 1) {
			let t = 0;
			for (let r of e) t += r[n];
			this.#e[this.#t] = t / e.length, this.#t += 1, this.#t === this.#e.length && this.#r();
		}
		return !this.#n;
	}
	#r() {
		this.port.postMessage(this.#e.slice(0, this.#t)), this.#t = 0;
	}
	#i() {
		this.#n || (this.#n = !0, this.#r(), this.port.postMessage("stopped"));
	}
};
registerProcessor("mimi-capture", e);
