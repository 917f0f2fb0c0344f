// client/src/jitter-buffer.ts
var e = class {
	#e;
	#t;
	#n;
	#r;
	#i;
	#a;
	#o;
	#s;
	#c;
	#l;
	#u = 0;
	#d = 0;
	#f = 0;
	#p = 0;
	#m = !1;
	#h = "filling";
	#g = 0;
	#_ = 0;
	#v = 0;
	#y = 0;
	#b = 0;
	#x = Infinity;
	#S = 0;
	constructor({ sampleRateHz: e, channels: t = 1, targetMs: n = 160, mostTargetMs: r = 1280, capacityMs: i = 8e3 }) {
		let a = (t) => Math.round(t * e / 1e3);
		this.#n = a(5), this.#e = Array.from({ length: t }, () => new Float32Array(a(i))), this.#t = Array.from({ length: t }, () => new Float32Array(this.#n)), this.#a = this.#r = a(n), this.#i = a(r), this.#o = a(120), this.#s = a(2e3), this.#c = a(1e4), this.#l = a(20);
	}
	get report() {
		return {
			playedSamples: this.#d - this.#f,
			waitingSamples: this.#C,
			targetSamples: this.#a,
			underruns: this.#p,
			skippedSamples: this.#f
		};
	}
	get isDrained() {
		return this.#m && this.#C === 0;
	}
	push(e) {
		let t = this.#e[0].length, n = e[0].length, r = Math.max(0, n - t), i = this.#C + n - r - t;
		i > 0 && this.#O(Math.min(i + this.#n, this.#C)), this.#e.forEach((i, a) => {
			let o = e[a];
			for (let e = r; e < n; e += 1) i[(this.#u + e - r) % t] = o[e];
		}), this.#u += n - r;
	}
	end() {
		this.#m = !0;
	}
	pull(e) {
		let t = e[0].length;
		for (let n = 0; n < t; n += 1) this.#w(e, n);
		this.#h === "playing" && this.#D(t);
	}
	get #C() {
		return this.#u - this.#d;
	}
	#w(e, n) {
		if (this.#h === "filling" && this.#C > 0 && (this.#m || this.#C >= this.#a) && (this.#h = "playing"), this.#h === "playing" && !this.#m && this.#C <= this.#n && (this.#h = "fading", this.#_ = this.#C, this.#g = 0), this.#h === "filling" || this.#C === 0) {
			e.forEach((e) => e[n] = 0);
			return;
		}
		let r = this.#T(), i = this.#y > 0 ? t(this.#y / this.#n) : 0;
		e.forEach((e, t) => {
			let a = this.#e[t], o = a[this.#d % a.length], s = i > 0 ? this.#t[t][this.#n - this.#y] : 0;
			e[n] = i > 0 ? r * (i * s + (1 - i) * o) : r === 1 ? o : r * o;
		}), this.#y = Math.max(0, this.#y - 1), this.#d += 1, this.#h === "fading" && this.#g === this.#_ && this.#E();
	}
	#T() {
		let e = 1;
		return this.#v > 0 && (e = 1 - t(this.#v / this.#n), --this.#v), this.#h === "fading" && (this.#g += 1, e *= 1 - t(this.#g / this.#_)), e;
	}
	#E() {
		this.#h = "filling", this.#p += 1, this.#a = Math.min(2 * this.#a, this.#i), this.#v = this.#n, this.#y = 0, this.#S = 0, this.#b = 0, this.#x = Infinity;
	}
	#D(e) {
		this.#b += e, this.#S += e, this.#x = Math.min(this.#x, this.#C), this.#S >= this.#c && (this.#S = 0, this.#a = Math.max(this.#r, this.#a - this.#l)), this.#b >= this.#s && (!this.#m && this.#x > this.#a + this.#o && this.#O(this.#x - this.#a), this.#b = 0, this.#x = Infinity);
	}
	#O(e) {
		this.#h !== "filling" && (this.#t.forEach((e, n) => {
			let r = this.#e[n];
			for (let n = 0; n < e.length; n += 1) {
				let i = n < this.#C ? r[(this.#d + n) % r.length] : 0, a = this.#y - n, o = a > 0 ? t(a / this.#n) : 0;
				e[n] = o > 0 ? o * e[this.#n - a] + (1 - o) * i : i;
			}
		}), this.#y = this.#n), this.#d += e, this.#f += e;
	}
};
function t(e) {
	return .5 - .5 * Math.cos(Math.PI * e);
}
// studio/src/worklets/player-worklet.ts
var n = .01, r = 1024, i = 4096, a = class extends AudioWorkletProcessor {
	#e;
	#t = [new Float32Array(i), new Float32Array(i)];
	#n = [0, 0];
	#r = [0, 0];
	#i = !1;
	#a = 0;
	constructor({ processorOptions: { listen: t, targetMs: n } }) {
		super(), this.#e = new e({
			sampleRateHz: sampleRate,
			channels: 2,
			targetMs: n
		}), this.#s(t), this.#n = [...this.#r], this.port.onmessage = (e) => this.#o(e.data);
	}
	process(e, t) {
		let i = t[0]?.[0], a = i?.length ?? 0, [s, c] = [this.#t[0].subarray(0, a), this.#t[1].subarray(0, a)];
		this.#e.pull([s, c]);
		let l = 1 / (n * sampleRate);
		for (let e = 0; i && e < a; e += 1) this.#n = [o(this.#n[0], this.#r[0], l), o(this.#n[1], this.#r[1], l)], i[e] = this.#n[0] * s[e] + this.#n[1] * c[e];
		this.#a += a;
		let u = this.#i && this.#e.isDrained;
		return (u || this.#a >= r) && (this.#a = 0, this.port.postMessage({
			...this.#e.report,
			atSamples: currentFrame + a
		})), u && this.port.postMessage("drained"), !u;
	}
	#o(e) {
		e === "end" ? (this.#i = !0, this.#e.end()) : "listen" in e ? this.#s(e.listen) : this.#e.push([e.input, e.output]);
	}
	#s(e) {
		this.#r = [+(e === "input"), +(e === "codec")];
	}
};
function o(e, t, n) {
	return e < t ? Math.min(t, e + n) : Math.max(t, e - n);
}
registerProcessor("mimi-player", a);
